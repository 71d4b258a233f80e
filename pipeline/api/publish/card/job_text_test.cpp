#include "pipeline/api/publish/card/job_text.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("a job on a card has no folders of the machine") {
  CHECK(without_folders("source: {huggingface: {path: /home/me/work/Tuna-7B, outtype: bf16}}\n") ==
        "source: {huggingface: {path: Tuna-7B, outtype: bf16}}\n");
  CHECK(without_folders("source: {gguf: '/home/me/My Models/a.gguf'}  # see /home/me/notes and more") ==
        "source: {gguf: 'a.gguf'}  # see notes and more");
  CHECK(without_folders("- gguf: /data/My Models/a.gguf # mine\n- gguf: ~/out/b.gguf") ==
        "- gguf: a.gguf # mine\n- gguf: b.gguf");
  CHECK(without_folders("a: [/x/a.gguf, \"/x/b c.gguf\", ../../me/c.gguf]") == "a: [a.gguf, \"b c.gguf\", c.gguf]");
  CHECK(without_folders(R"(a: 'C:\Users\me\a.gguf')") == "a: 'a.gguf'");
  CHECK(without_folders("command: [sh, -c, 'cp /home/me/a /home/me/b']") == "command: [sh, -c, 'cp a b']");
  CHECK(without_folders("path: /home/me/Tuna/\nfile: file:///home/me/a.gguf") == "path: Tuna\nfile: a.gguf");
  CHECK(without_folders("a: 'it''s\n  here' /srv/me/x\nb: /srv/me/y") == "a: 'it''s\n  here' x\nb: y");
}

TEST_CASE("the rest of a job on a card is unchanged") {
  for (const char* text : {"source: {huggingface: hf://org/Tuna@main/sub}\n", "outputs: [{gguf: out/a-{recipe}.gguf}]",
                           "sample: 1/16", "source: '${CHECKPOINT}'", "match: '/h'", "a: https://example.org/a/b",
                           "upload: {to: s3://bucket/a/b}", "/", "# and/or", "a: ./b/c", ""})
    CHECK(without_folders(text) == text);
}
