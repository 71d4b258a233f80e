#include "pipeline/config/overrides.h"

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr const char* kText = R"(version: 1
source: {gguf: in.gguf}
stages:
  - metadata: {set: {general.license: mit}}
outputs:
  - gguf: a.gguf
    quantize: {type: Q3_K, tensors: [{match: up, type: Q5_K}]}
  - gguf: {path: b.gguf}
)";

Job with(const std::vector<std::string>& set) {
  Diagnostics errors;
  std::optional<Job> job = parse_job(kText, "a.yaml", testing::registry(), {set, {}}, errors);
  for (const Error& error : errors.errors()) FAIL_CHECK(render(error));
  REQUIRE(job);
  return std::move(*job);
}

std::string messages(const std::vector<std::string>& set) {
  Diagnostics errors;
  CHECK_FALSE(parse_job(kText, "a.yaml", testing::registry(), {set, {}}, errors));
  std::string out;
  for (const Error& error : errors.errors()) out += render(error);
  return out;
}

}  // namespace

TEST_CASE("--set changes a value") {
  CHECK(testing::path_of(*with({"source.gguf=x.gguf"}).source) == "x.gguf");
  CHECK(testing::file_of(*with({"outputs.0.gguf=out/x.gguf"}).outputs[0].sink).path == "out/x.gguf");
  CHECK(testing::file_of(*with({"outputs.1.gguf.path=x.gguf"}).outputs[1].sink).path == "x.gguf");
}

TEST_CASE("--set adds keys of the field table") {
  const Job job =
      with({"limits.memory=1GiB", "limits.threads=3", "outputs.1.gguf.shard_size=5G", "outputs.1.quantize=F16"});
  CHECK(job.limits.memory == 1ull << 30);
  CHECK(job.limits.threads == 3);
  CHECK(testing::file_of(*job.outputs[1].sink).bytes == 5000000000);
  CHECK(job.outputs[1].stages.size() == 1);
}

TEST_CASE("--set appends an item to a list") {
  const Job job = with({"outputs.2.gguf=c.gguf", "outputs.2.quantize.type=Q8_0"});
  REQUIRE(job.outputs.size() == 3);
  CHECK(testing::file_of(*job.outputs[2].sink).path == "c.gguf");
  CHECK(job.outputs[2].stages.size() == 1);
}

TEST_CASE("the value of --set is YAML") {
  const Job job = with({"outputs=[{gguf: x.gguf}]", "stages=[]"});
  CHECK(job.outputs.size() == 1);
  CHECK(job.stages.empty());
}

TEST_CASE("the last --set of a path wins") {
  CHECK(testing::path_of(*with({"source.gguf=x", "source.gguf=y"}).source) == "y");
}

TEST_CASE("keys with dots are one key in a dictionary of values, and in quotes") {
  ConfigTexts texts;
  Diagnostics errors;
  auto root = read_yaml(kText, "a.yaml", texts, errors);
  REQUIRE(root);
  const FieldSpec fields = job_fields(testing::registry());
  apply_override(*root, fields, "stages.0.metadata.set.general.license=apache", texts, errors);
  apply_override(*root, fields, "stages.0.metadata.set.\"a.b\"={c: d}", texts, errors);
  CHECK(errors.empty());
  const ConfigNode* set = root->find("stages")->items[0].find("metadata")->find("set");
  REQUIRE(set);
  CHECK(set->entries.size() == 2);
  CHECK(set->find("general.license")->scalar == "apache");
  CHECK(set->find("a.b")->is_map());
}

TEST_CASE("parameters can be declared and used by --set") {
  CHECK(testing::path_of(*with({"parameters.NAME.default=n", "source.gguf=${NAME}.gguf"}).source) == "n.gguf");
}

TEST_CASE("an invalid --set is refused with its position") {
  CHECK(messages({"outputs.0.gguff=x"}) == R"(--set: error: unknown key 'gguff'
       | outputs.0.gguff=x
       |           ^^^^^
  help: did you mean 'gguf'?
)");
  CHECK(messages({"outputs.5.gguf=x"}) == R"(--set: error: the list has no item '5'
       | outputs.5.gguf=x
       |         ^
  help: items 0 to 1 exist, 2 appends one
)");
  CHECK(messages({"outputs.first.gguf=x"}) == R"(--set: error: the list has no item 'first'
       | outputs.first.gguf=x
       |         ^^^^^
  help: items 0 to 1 exist, 2 appends one
)");
  CHECK(messages({"outputs.0.gguf.path=x"}) == R"(--set: error: nothing can be set inside 'gguf'
       | outputs.0.gguf.path=x
       |                ^^^^
  help: it is a path or a map: set it as a whole
)");
  CHECK(messages({"version.x=1"}) == R"(--set: error: nothing can be set inside 'version'
       | version.x=1
       |         ^
  help: it is an integer: set it as a whole
)");
}

TEST_CASE("a --set without path or value is refused") {
  for (const char* text : {"x", "", "=x", ".=x", "a..b=x", "a.=x", "\"a=x", "\"a\"b=x", "source.gguf=a\nb"}) {
    INFO(text);
    CHECK(messages({text}).find("error: expected PATH=VALUE on one line") != std::string::npos);
  }
}

TEST_CASE("a wrong value of --set is shown in context") {
  CHECK(messages({"limits.memory=12X", "outputs.0.quantize=Q5_M", "outputs.1.gguf="}) ==
        R"(--set: error: unknown quantization type 'Q5_M'
       | outputs.0.quantize=Q5_M
       |                    ^^^^
  help: did you mean 'Q5_K'? `ggufmill types` lists them
--set: error: expected a path or a map, found nothing
       | outputs.1.gguf=
       |                ^
  help: for example out/model.gguf
--set: error: '12X' is not a size
       | limits.memory=12X
       |               ^^^
  help: write a number and a unit: 512MiB, 20G, 1.5GiB
)");
}
