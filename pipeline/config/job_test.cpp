#include "pipeline/config/job.h"

#include <sys/stat.h>

#include "pipeline/config/test_registry.h"
#include "pipeline/io/platform/system.h"
#include "tests/support/catch.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

std::string messages(std::string_view text, const JobOptions& options = {}) {
  Diagnostics errors;
  const bool bound = parse_job(text, "a.yaml", testing::registry(), options, errors).has_value();
  CHECK(bound == errors.empty());
  std::string out;
  for (const Error& error : errors.errors()) {
    CHECK(error.code == ExitCode::kUsage);
    out += render(error);
  }
  return out;
}

Job bind(std::string_view text, const JobOptions& options = {}) {
  Diagnostics errors;
  std::optional<Job> job = parse_job(text, "a.yaml", testing::registry(), options, errors);
  for (const Error& error : errors.errors()) INFO(render(error));
  REQUIRE(job);
  return std::move(*job);
}

constexpr const char* kSmall = "version: 1\nsource: {gguf: in.gguf}\noutputs: [{gguf: out.gguf}]\n";

}  // namespace

TEST_CASE("a small pipeline file has defaults") {
  const Job job = bind(kSmall);
  CHECK(job.file == "a.yaml");
  CHECK(testing::path_of(*job.source) == "in.gguf");
  CHECK(job.stages.empty());
  REQUIRE(job.outputs.size() == 1);
  CHECK(testing::file_of(*job.outputs[0].sink).path == "out.gguf");
  CHECK_FALSE(job.limits.memory);
  CHECK(job.limits.threads == 0);
}

TEST_CASE("a complete pipeline file is bound") {
  const Job job = bind(R"(# comment
version: 1
source: {gguf: models/in.gguf}
stages:
  - metadata: {set: {general.license: mit}, remove: [general.url]}
  - quantize: F16
outputs:
  - gguf: out/Llama-{recipe}.gguf
    quantize: Q4_K
  - gguf: {path: out/mine.gguf, shard_size: 20G}
    quantize:
      type: Q3_K
      tensors:
        - {match: 'blk\.\d+\.ffn_down', type: Q5_K}
limits: {memory: 1.5GiB, threads: 12, nice: 10, io: direct}
)");
  CHECK(job.stages.size() == 2);
  REQUIRE(job.outputs.size() == 2);
  CHECK(testing::file_of(*job.outputs[0].sink).path == "out/Llama-{recipe}.gguf");
  CHECK(job.outputs[0].stages.size() == 1);
  CHECK(testing::file_of(*job.outputs[1].sink).path == "out/mine.gguf");
  CHECK(testing::file_of(*job.outputs[1].sink).bytes == 20000000000);
  CHECK(job.limits.memory == 3ull << 29);
  CHECK(job.limits.threads == 12);
  CHECK(job.limits.nice == 10);
  CHECK(job.limits.io == IoMode::kDirect);
}

TEST_CASE("all errors of a file are reported together, in file order") {
  CHECK(messages(R"(version: 2
sourc: {gguf: in.gguf}
stages:
  - metadata: {remov: [general.url]}
  - metadata: {}
    quantize: F16
  - {}
  -
outputs:
  - gguf: a.gguf
    quantize: Q5_M
  - gguf: {path: out/x.gguf, shard_size: 20X}
    quantize:
      tensors:
        - {match: 'blk\.(\d+', type: Q5_K, type: Q6_K}
        - [a]
  - quantize: {type: F17}
  - gguf: b.gguf
    quantize: F64
limits: {memory: 512, threads: many, speed: 3}
)") == R"(a.yaml:1:10: error: version 2 is not supported: this program reads version 1
     1 | version: 2
       |          ^
a.yaml:2:1: error: unknown key 'sourc'
     2 | sourc: {gguf: in.gguf}
       | ^^^^^
  help: did you mean 'source'?
a.yaml:4:16: error: unknown key 'remov'
     4 |   - metadata: {remov: [general.url]}
       |                ^^^^^
  help: did you mean 'remove'?
a.yaml:6:5: error: 'quantize' and 'metadata' cannot be given together
     6 |     quantize: F16
       |     ^^^^^^^^
  help: give exactly one of them
a.yaml:7:5: error: missing one of the keys 'metadata', 'quantize'
     7 |   - {}
       |     ^
  help: for example metadata: {remove: [general.url]}
a.yaml:8:3: error: expected a map, found nothing
     8 |   -
       |   ^
  help: for example {metadata: {remove: [general.url]}}
a.yaml:11:15: error: unknown quantization type 'Q5_M'
    11 |     quantize: Q5_M
       |               ^^^^
  help: did you mean 'Q5_K'? `ggufmill types` lists them
a.yaml:12:42: error: '20X' is not a size
    12 |   - gguf: {path: out/x.gguf, shard_size: 20X}
       |                                          ^^^
  help: write a number and a unit: 512MiB, 20G, 1.5GiB
a.yaml:14:7: error: missing key 'type'
    14 |       tensors:
       |       ^^^^^^^
  help: for example type: Q5_K
a.yaml:15:29: error: bad regular expression 'blk\.(\d+': unmatched marking parenthesis ( or \(
    15 |         - {match: 'blk\.(\d+', type: Q5_K, type: Q6_K}
       |                             ^
  help: escape special characters with a backslash: 'a\.b\('
a.yaml:15:44: error: duplicate key 'type'
    15 |         - {match: 'blk\.(\d+', type: Q5_K, type: Q6_K}
       |                                            ^^^^
  help: it is already in line 15
a.yaml:16:11: error: expected a map, found a list
    16 |         - [a]
       |           ^
a.yaml:17:5: error: missing key 'gguf'
    17 |   - quantize: {type: F17}
       |     ^^^^^^^^
  help: for example gguf: out/model.gguf
a.yaml:17:22: error: unknown quantization type 'F17'
    17 |   - quantize: {type: F17}
       |                      ^^^
  help: did you mean 'F16'? `ggufmill types` lists them
a.yaml:19:15: error: nothing is quantized to F64
    19 |     quantize: F64
       |               ^^^
a.yaml:20:18: error: '512' is not a size of at least 1MiB
    20 | limits: {memory: 512, threads: many, speed: 3}
       |                  ^^^
a.yaml:20:32: error: 'many' is not 'auto' or an integer from 1 to 1024
    20 | limits: {memory: 512, threads: many, speed: 3}
       |                                ^^^^
a.yaml:20:38: error: unknown key 'speed'
    20 | limits: {memory: 512, threads: many, speed: 3}
       |                                      ^^^^^
  help: known keys: memory, threads, nice, io, spool
)");
}

TEST_CASE("everything is missing from an empty file") {
  const std::string nothing =
      "a.yaml: error: expected a map, found nothing\n"
      "  help: for example {version: 1, source: {gguf: model.gguf}, outputs: [{gguf: out/model.gguf}]}\n";
  CHECK(messages("") == nothing);
  CHECK(messages("# nothing\n") == nothing);
}

TEST_CASE("missing required keys are named with an example") {
  CHECK(messages("limits: {}\n") == R"(a.yaml:1:1: error: missing key 'version'
     1 | limits: {}
       | ^^^^^^
  help: for example version: 1
a.yaml:1:1: error: missing key 'outputs'
     1 | limits: {}
       | ^^^^^^
  help: for example outputs: [{gguf: out/model.gguf}]
a.yaml:1:1: error: missing one of the keys 'source', 'matrix'
     1 | limits: {}
       | ^^^^^^
  help: for example source: {gguf: model.gguf}
)");
}

TEST_CASE("a job must have at least one output") {
  CHECK(messages("version: 1\nsource: {gguf: a}\noutputs: []\n") ==
        R"(a.yaml:3:10: error: expected at least 1 item, found 0
     3 | outputs: []
       |          ^
  help: for example [{gguf: out/model.gguf}]
)");
}

TEST_CASE("a stage that is not per output is refused in an output") {
  GGUFMILL_NEEDS("after");
  CHECK(messages("version: 1\nsource: {gguf: a}\noutputs: [{gguf: b, metadata: {}}]\n") ==
        R"(a.yaml:3:21: error: unknown key 'metadata'
     3 | outputs: [{gguf: b, metadata: {}}]
       |                     ^^^^^^^^
  help: known keys: gguf, quantize, part, outtype, reuse, after
)");
}

TEST_CASE("a file that cannot be read is a usage error") {
  Diagnostics errors;
  CHECK_FALSE(load_job("no/such.yaml", testing::registry(), {}, errors));
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors()[0].code == ExitCode::kUsage);
  CHECK(render(errors.errors()[0]) ==
        "no/such.yaml: error: cannot read the pipeline file: No such file or directory\n");
}

TEST_CASE("a folder is not a pipeline file") {
  Diagnostics errors;
  CHECK_FALSE(load_job("/", testing::registry(), {}, errors));
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors()[0].what ==
        std::string("cannot read the pipeline file: ") + (kIsPosix ? "Is a directory" : "Permission denied"));
}

TEST_CASE("errors are cut off at a hundred") {
  std::string text = kSmall;
  for (int i = 0; i < 300; ++i) text += "k" + std::to_string(i) + ": 1\n";
  Diagnostics errors;
  CHECK_FALSE(parse_job(text, "a.yaml", testing::registry(), {}, errors));
  REQUIRE(errors.errors().size() == kMaxErrors + 1);
  CHECK(render(errors.errors().back()) == "error: stopped after 100 errors\n");
}

TEST_CASE("an example with braces is quoted inside braces") {
  Registry braces = testing::make_registry();
  braces.sinks[0].field.example = "out/{recipe}.gguf";
  for (const FieldSpec& field : job_fields(braces).fields)
    if (field.name == "outputs") CHECK(field.example == "[{gguf: 'out/{recipe}.gguf'}]");
}

TEST_CASE("a pipeline file that is a pipe is refused, and not waited for") {
  const TempDir folder;
  REQUIRE(::mkfifo(folder.file("pipe.yaml").c_str(), 0600) == 0);
  Diagnostics errors;
  CHECK_FALSE(load_batch(folder.file("pipe.yaml"), testing::registry(), {}, errors));
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors().front().code == ExitCode::kUsage);
  CHECK(errors.errors().front().where == folder.file("pipe.yaml"));
  CHECK(errors.errors().front().what == "a pipeline file is a regular file, and this is not");
}
