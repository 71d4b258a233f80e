#include "pipeline/api/publish/card/markdown.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("ordinary names are Markdown as they are") {
  for (const std::string name : {"Llama-3.1-8B_Instruct", "Q4_K_M", "org/model", "Grüße", "1.5 (beta), 2"})
    CHECK(markdown_text(name) == name);
}

TEST_CASE("characters with a meaning in Markdown are escaped") {
  CHECK(markdown_text("a|b*c`d[e]<f>~g&h$i\\") == "a\\|b\\*c\\`d\\[e\\]\\<f\\>\\~g\\&h\\$i\\\\");
  CHECK(markdown_text("_a_ b_") == "\\_a\\_ b\\_");
  CHECK(markdown_text("# a # -") == "\\# a # -");
}

TEST_CASE("the target of a link is percent-encoded") {
  CHECK(markdown_link("a b", "x/a b.gguf") == "[a b](x/a%20b.gguf)");
  CHECK(markdown_link("a", "é)\n") == "[a](%C3%A9%29%0A)");
}

TEST_CASE("the fence of a code block is longer than those in it") {
  CHECK(markdown_code("a", "") == "```\na\n```");
  CHECK(markdown_code("```\n", "yaml") == "````yaml\n```\n````");
}

TEST_CASE("control characters of a code block are shown") {
  CHECK(markdown_code("a\tb\x1b", "") == "```\na\tb\\x1b\n```");
}
