#include "pipeline/config/node_text.h"

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"
#include "pipeline/config/yaml_reader.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

std::string resolved(std::string_view text, const JobOptions& options = {}) {
  Diagnostics errors;
  const auto job = parse_job(text, "a.yaml", testing::registry(), options, errors);
  if (!job) FAIL(render(errors.together()));
  return job->text;
}

}  // namespace

TEST_CASE("a resolved pipeline file has its values, and is its own resolved form") {
  const std::string text = resolved(
      "version: 1\nparameters: {P: {default: '0.5'}, N: {}}\nsource: {gguf: 'in $${x}.gguf'}\noutputs:\n"
      "- {gguf: \"a, b: c#.gguf\", quantize: {type: Q5_K, scale: '${P}', keep: false, tensors: [{match: '^a[.]b$', "
      "type: Q6_K}]}}\n- gguf: ${N}\n",
      {{"limits.threads=3"}, {"N=it's.gguf"}});
  CHECK(text.find("parameters") == text.npos);
  CHECK(text.find("\"scale\": 0.5") != text.npos);
  CHECK(text.find("\"keep\": false") != text.npos);
  CHECK(text.find("\"threads\": 3") != text.npos);
  CHECK(text.find("'in $${x}.gguf'") != text.npos);
  CHECK(text.find("'a, b: c#.gguf'") != text.npos);
  CHECK(text.find("'it''s.gguf'") != text.npos);
  CHECK(resolved(text) == text);
}

TEST_CASE("texts in quotes stay texts") {
  CHECK(resolved("version: 1\nsource: {gguf: '7'}\noutputs: [{gguf: 007}]\n").find("{\n    \"gguf\": '7'\n") !=
        std::string::npos);
  CHECK(resolved("version: 1\nsource: {gguf: '7'}\noutputs: [{gguf: 007}]\n").find(": 007") != std::string::npos);
}

TEST_CASE("options that decide no byte are removed, and the others stay") {
  const auto left = deciding_part_of(
      "version: 1\nsource: {gguf: a$$.gguf}\noutputs: [{gguf: b.gguf, part: text, reuse: c.gguf}]\n"
      "limits: {threads: 3}\nreport: {json: r.json}\nnonfinite: zero\ncluster: {account: mine}\n",
      "a.yaml", testing::registry());
  if (!left) FAIL(render(left.error()));
  CHECK(left.value() ==
        resolved("version: 1\nsource: {gguf: a$$.gguf}\noutputs: [{gguf: b.gguf, part: text}]\nnonfinite: zero\n"));
}

TEST_CASE("the paths of a pipeline file are replaced, and those of outputs are known wherever they stand") {
  const std::string text = resolved(
      "version: 1\nsource: {gguf: in.gguf}\noutputs:\n- gguf: out.gguf\n- {gguf: {path: b.gguf}, reuse: out.gguf}\n"
      "report: {json: r.json}\n");
  std::vector<std::string> written, read;
  const auto replaced =
      with_other_paths(text, "a.yaml", testing::registry(), [&](const std::string& path, PathUse use) {
        (use == PathUse::kWritten ? written : read).push_back(path);
        return "new/" + path;
      });
  if (!replaced) FAIL(render(replaced.error()));
  CHECK(written == std::vector<std::string>{"out.gguf", "b.gguf", "out.gguf"});
  CHECK(read == std::vector<std::string>{"in.gguf", "r.json"});
  CHECK(replaced.value().find("new/in.gguf") != std::string::npos);
  CHECK(!with_other_paths("version: 2", "a.yaml", testing::registry(), [](const auto& path, PathUse) { return path; }));
}
