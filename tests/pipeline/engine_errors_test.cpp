// Checks the errors of a run on bad weights and bad plans, and that the run leaves no files.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "pipeline/io/platform/filesystem.h"
#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"

using namespace ggufmill;
using testing::EngineFixture;
using testing::options_for;
using testing::shape_of;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const std::vector<std::string> kOnlySource = {"source.gguf"};

std::string bytes_of_float(float value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

// Returns the error, which must be the same in both engines; the graph engine runs with many threads and small slabs.
// Only the source may remain in the folder.
Error error_of(EngineFixture& fixture) {
  fixture.plan.limits.threads = 8;
  EngineOptions options = options_for(EngineKind::kGraph);
  options.slab_bytes = 1;
  const Result<RunReport> graph = fixture.run(options);
  const Result<RunReport> simple = fixture.run(options_for(EngineKind::kSimple));
  REQUIRE(!graph);
  REQUIRE(!simple);
  CHECK(render(graph.error()) == render(simple.error()));
  CHECK(graph.error().code == simple.error().code);
  CHECK(fixture.names() == kOnlySource);
  return graph.error();
}

}  // namespace

TEST_CASE("NaN is named by tensor, row, column and byte of the file, the first of all") {
  EngineFixture fixture({{"a", shape_of({256, 100}), "F32", {"F32"}, false},
                         {"blk.0.ffn_up.weight", shape_of({256, 3000}), "F32", {"Q8_0"}, false}});
  fixture.patch_source(1, (2101 * 256 + 77) * 4, bytes_of_float(kNan));
  fixture.patch_source(1, (2102 * 256 + 5) * 4, bytes_of_float(kInfinity));
  fixture.patch_source(1, (2999 * 256) * 4, bytes_of_float(kNan));
  const Error error = error_of(fixture);
  CHECK(error.code == ExitCode::kBadInput);
  CHECK(error.what == "tensor 'blk.0.ffn_up.weight', row 2101, column 77: NaN");
  // 64 for the header, 102400 in the first tensor, 2151732 in the second
  CHECK(error.detail == "in " + fixture.path("source.gguf") + " at byte 0x226574; nothing was written");
}

TEST_CASE("infinity is distinguished from NaN, in rows of all matrices") {
  EngineFixture fixture({{"experts", shape_of({32, 10, 5}), "F32", {"F16"}, false}});
  fixture.patch_source(0, (37 * 32 + 31) * 4, bytes_of_float(-kInfinity));
  CHECK(error_of(fixture).what == "tensor 'experts', row 37, column 31: infinity");
}

TEST_CASE("a bad scale of a quantized source is named by its block") {
  EngineFixture fixture({{"q", shape_of({64, 10}), "Q8_0", {"F32"}, false}});
  fixture.patch_source(0, (3 * 2 + 1) * 34, std::string("\x00\x7c", 2));
  const Error error = error_of(fixture);
  CHECK(error.what.rfind("tensor 'q', row 3, column 32: ", 0) == 0);
  CHECK(error.detail == "in " + fixture.path("source.gguf") + " at byte 0x12e; nothing was written");  // 64 + 7 * 34
}

TEST_CASE("bad weights in the other byte order are found where they stand in the file") {
  EngineFixture fixture({{"b", shape_of({64, 10}), "F32", {"F16"}, false, true}});
  fixture.patch_source(0, (9 * 64 + 1) * 4, std::string("\x7f\x80\x00\x00", 4));
  const Error error = error_of(fixture);
  CHECK(error.what == "tensor 'b', row 9, column 1: infinity");
  CHECK(error.detail == "in " + fixture.path("source.gguf") + " at byte 0x944; nothing was written");
}

TEST_CASE("a value that is too large for the target type is refused") {
  EngineFixture fixture({{"big", shape_of({64, 10}), "F32", {"F16"}, false}});
  fixture.patch_source(0, (5 * 64 + 33) * 4, bytes_of_float(70000.0f));
  const Error error = error_of(fixture);
  CHECK(error.code == ExitCode::kBadInput);
  CHECK(error.what == "tensor 'big', row 5, column 33: a value is too large for F16");
}

TEST_CASE("a value that makes a scale overflow is refused, named by its own place") {
  EngineFixture fixture({{"big", shape_of({64, 10}), "F32", {"Q4_0"}, false}});
  fixture.patch_source(0, (5 * 64 + 33) * 4, bytes_of_float(1e9f));
  CHECK(error_of(fixture).what == "tensor 'big', row 5, column 33: a value is too large for Q4_0");
}

TEST_CASE("what is only copied is looked at, too") {
  EngineFixture fixture({{"kept", shape_of({64, 10}), "F32", {"F32"}, false}});
  fixture.patch_source(0, 400, bytes_of_float(kNan));
  const Error error = error_of(fixture);
  CHECK(error.what == "tensor 'kept', row 1, column 36: NaN");
  CHECK(error.detail == "in " + fixture.path("source.gguf") + " at byte 0x1d0; nothing was written");
}

TEST_CASE("a copied block whose scale is not finite is named by its place") {
  EngineFixture fixture({{"q", shape_of({64, 10}), "Q8_0", {"Q8_0"}, false}});
  fixture.patch_source(0, (3 * 2 + 1) * 34, std::string("\x00\x7c", 2));
  CHECK(error_of(fixture).what == "tensor 'q', row 3, column 32: a scale that is not finite");
}

TEST_CASE("a type without a kernel is refused with the tensor's name") {
  EngineFixture fixture({{"ids", shape_of({64, 10}), "F32", {"U8"}, false}});
  const Error error = error_of(fixture);
  CHECK(error.code == ExitCode::kKernel);
  CHECK(error.what.rfind("tensor 'ids': ", 0) == 0);
  CHECK(error.what.find("U8") != std::string::npos);
}

TEST_CASE("a type that needs importance is refused without it") {
  EngineFixture fixture({{"w", shape_of({256, 10}), "F32", {"IQ2_XXS"}, false}});
  const Error error = error_of(fixture);
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.what == "tensor 'w': IQ2_XXS needs importance weights");
}

TEST_CASE("a type with interleaved rows that needs importance is refused under its own name") {
  GGUFMILL_NEEDS("IQ2_XXS_R4");
  EngineFixture fixture({{"w", shape_of({256, 8}), "F32", {"IQ2_XXS_R4"}, false}});
  CHECK(error_of(fixture).what == "tensor 'w': IQ2_XXS_R4 needs importance weights");
}

TEST_CASE("a memory limit below the least is refused, and the least is enough") {
  EngineFixture fixture({{"w", shape_of({4096, 10}), "F32", {"Q8_0"}, false}}, 24575);
  const Error error = error_of(fixture);
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.what == "a memory limit of 24575 bytes is too small for this job");
  CHECK(error.help == "its longest rows need 24576 bytes: set limits.memory to that or more");
  fixture.plan.limits.memory = 24576;
  CHECK(fixture.run());
}

TEST_CASE("a source that changed since its header was read is refused") {
  EngineFixture fixture({{"w", shape_of({256, 10}), "F32", {"Q8_0"}, false}});
  write_text(fixture.path("source.gguf"), "shorter");
  const Error error = error_of(fixture);
  CHECK(error.code == ExitCode::kBadInput);
  CHECK(error.what == "the file changed since its header was read");
  CHECK(error.detail == "7 bytes long, but 10304 before");
}

TEST_CASE("two outputs of one path are refused, however they are spelled") {
  EngineFixture fixture({{"w", shape_of({256, 10}), "F32", {"Q8_0", "F16"}, false}});
  fixture.plan.outputs[1].files[0].path = fixture.path("./x/../out-0.gguf");
  const Error error = error_of(fixture);
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.what == fmt::format("the output is the same file as the output '{}'", fixture.path("out-0.gguf")));
}

TEST_CASE("a plan with problems is refused, whoever runs it") {
  EngineFixture fixture({{"w", shape_of({256, 10}), "F32", {"Q8_0", "F16"}, false}});
  SECTION("of its outputs: one error for the same cause") {
    for (PlannedOutput& output : fixture.plan.outputs) output.problems = {usage_error("no importance", "give some")};
    const Error error = error_of(fixture);
    CHECK(render(error) == fmt::format("error: no importance\n  {}\n  {}\n  help: give some\n",
                                       fixture.path("out-0.gguf"), fixture.path("out-1.gguf")));
    CHECK(error.also.empty());
  }
  SECTION("of its limits") {
    fixture.plan.limits.nice = 99;
    CHECK(error_of(fixture).what == "limits.nice is 99, but the maximum is 19");
  }
  CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
}

TEST_CASE("an existing output stays as it was unless it may be overwritten") {
  EngineFixture fixture({{"w", shape_of({256, 10}), "F32", {"Q8_0"}, false}});
  write_text(fixture.path("out-0.gguf"), "old");
  EngineOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  CHECK(fixture.run(options).error().code == ExitCode::kUsage);
  CHECK(read_text(fixture.path("out-0.gguf")) == "old");
  options.overwrite = true;
  REQUIRE(fixture.run(options));
  CHECK(fixture.take_outputs() == fixture.expected_outputs());
}

TEST_CASE("of several outputs that cannot be made the first is named, and none is left") {
  EngineFixture fixture({{"w", shape_of({256, 10}), "F32", {"Q8_0", "F16", "Q4_0"}, false}});
  fixture.plan.limits.threads = 8;
  write_text(fixture.path("out-1.gguf"), "old");
  write_text(fixture.path("out-2.gguf"), "old");
  CHECK(fixture.run().error().where == fixture.path("out-1.gguf"));
  CHECK(fixture.names() == std::vector<std::string>{"out-1.gguf", "out-2.gguf", "source.gguf"});
}

TEST_CASE("outputs that share missing folders are all made, or none of the folders") {
  const std::vector<std::string> types(12, "Q8_0");
  EngineFixture fixture({{"w", shape_of({256, 10}), "F32", types, false}});
  fixture.plan.limits.threads = 8;
  for (std::size_t i = 0; i < types.size(); ++i)
    fixture.plan.outputs[i].files[0].path = fixture.path("a/b/" + std::to_string(i % 2) + "/" + std::to_string(i));
  SECTION("made") {
    REQUIRE(fixture.run());
    for (const PlannedOutput& output : fixture.plan.outputs) CHECK(fs::exists(output.files[0].path));
  }
  SECTION("none") {
    fixture.plan.outputs[5].files[0].path = fixture.path("source.gguf");
    CHECK_FALSE(fixture.run());
    CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
  }
}

TEST_CASE("what is not finite becomes 0 where that is asked for, and is counted") {
  EngineFixture fixture({{"a", shape_of({256, 100}), "F32", {"F32", "Q8_0", "F16"}, false},
                         {"b", shape_of({256, 100}), "Q8_0", {"Q8_0", "F32", "F16"}, false}});
  const std::string zero = bytes_of_float(0);
  fixture.patch_source(0, (7 * 256 + 9) * 4, zero);
  fixture.patch_source(0, (70 * 256 + 1) * 4, zero);
  fixture.patch_source(1, 34 * 3, std::string(34, '\0'));
  REQUIRE(fixture.run(options_for(EngineKind::kSimple)));
  const auto right = fixture.take_outputs();
  fixture.patch_source(0, (7 * 256 + 9) * 4, bytes_of_float(kNan));
  fixture.patch_source(0, (70 * 256 + 1) * 4, bytes_of_float(-kInfinity));
  fixture.patch_source(1, 34 * 3, std::string("\x00\x7c", 2) + std::string(32, '\1'));
  fixture.plan.nonfinite = Nonfinite::kZero;
  EngineOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.slab_bytes = 1;
  const auto report = fixture.run(options);
  if (!report) FAIL(render(report.error()));
  CHECK((fixture.take_outputs() == right));
  REQUIRE(report.value().warnings.size() == 2);
  CHECK(report.value().warnings[0].starts_with(
      "tensor 'a': 2 values are not finite, and written as 0; the first in row 7, column 9, in "));
  CHECK(report.value().warnings[1].starts_with(
      "tensor 'b': 1 block is not finite, and written as 0; the first in row 0, column 96, in "));
}

TEST_CASE("what is not finite is kept where that is asked for and the type can hold it") {
  EngineFixture fixture({{"a", shape_of({256, 100}), "F32", {"F32", "F16", "BF16"}, false}});
  fixture.patch_source(0, (7 * 256 + 9) * 4, bytes_of_float(kInfinity));
  fixture.plan.nonfinite = Nonfinite::kKeep;
  const auto report = fixture.run(options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple)));
  if (!report) FAIL(render(report.error()));
  CHECK(report.value().warnings.size() == 1);
  const auto outputs = fixture.take_outputs();
  for (const auto& [output, bytes] : {std::pair(0, bytes_of_float(kInfinity)), std::pair(1, std::string("\x00\x7c", 2)),
                                      std::pair(2, std::string("\x80\x7f", 2))}) {
    const auto place = fixture.plan.outputs[static_cast<std::size_t>(output)].files[0].tensors[0].offset;
    CHECK((outputs[static_cast<std::size_t>(output)].substr(place + (7 * 256 + 9) * bytes.size(), bytes.size()) ==
           bytes));
  }
}

TEST_CASE("what is not finite cannot be kept in a quantized type, and a number that is too large is no such thing") {
  EngineFixture fixture({{"a", shape_of({256, 100}), "F32", {"Q8_0"}, false}});
  fixture.patch_source(0, (7 * 256 + 9) * 4, bytes_of_float(kNan));
  fixture.plan.nonfinite = Nonfinite::kKeep;
  CHECK(error_of(fixture).help == "Q8_0 cannot hold it: set `nonfinite: zero`, or choose another type for this tensor");
  EngineFixture large({{"a", shape_of({256, 100}), "F32", {"F16"}, false}});
  large.patch_source(0, (7 * 256 + 9) * 4, bytes_of_float(1e30f));
  large.plan.nonfinite = GENERATE(Nonfinite::kKeep, Nonfinite::kZero);
  CHECK(error_of(large).what == "tensor 'a', row 7, column 9: a value is too large for F16");
}

TEST_CASE("blocks into which a checkpoint is converted do not hide values that are not finite") {
  EngineFixture fixture({{"a", shape_of({256, 100}), "F32", {"Q8_0"}, false}});
  auto& expression = fixture.plan.steps[0].expression;
  expression = expressions::cast(expression, type_named("Q8_0")).value();
  const std::string zero = bytes_of_float(0);
  fixture.patch_source(0, (7 * 256 + 9) * 4, zero);
  fixture.patch_source(0, (70 * 256 + 1) * 4, zero);
  const EngineKind kind = GENERATE(EngineKind::kGraph, EngineKind::kSimple);
  REQUIRE(fixture.run(options_for(kind)));
  const auto right = fixture.take_outputs();
  fixture.patch_source(0, (7 * 256 + 9) * 4, bytes_of_float(kNan));
  fixture.patch_source(0, (70 * 256 + 1) * 4, bytes_of_float(-kInfinity));
  CHECK(error_of(fixture).what == "tensor 'a', row 7, column 9: NaN");
  fixture.plan.nonfinite = Nonfinite::kKeep;
  CHECK(error_of(fixture).help == "Q8_0 cannot hold it: set `nonfinite: zero`, or choose another type for this tensor");
  fixture.plan.nonfinite = Nonfinite::kZero;
  const auto report = fixture.run(options_for(kind));
  if (!report) FAIL(render(report.error()));
  CHECK((fixture.take_outputs() == right));
  REQUIRE(report.value().warnings.size() == 1);
  CHECK(report.value().warnings[0].starts_with(
      "tensor 'a': 2 values are not finite, and written as 0; the first in row 7, column 9, in "));
}

TEST_CASE("a number of 64 bits that 32 bits cannot hold is too large, not infinite") {
  EngineFixture fixture({{"a", shape_of({256, 100}), "F64", {"F32"}, false}});
  const double large = -1e300;
  fixture.patch_source(0, (7 * 256 + 9) * 8, std::string(reinterpret_cast<const char*>(&large), sizeof large));
  fixture.plan.nonfinite = GENERATE(Nonfinite::kError, Nonfinite::kZero, Nonfinite::kKeep);
  const std::string what = "tensor 'a', row 7, column 9: a value is too large for F32";
  CHECK(error_of(fixture).what == what);
  auto& expression = fixture.plan.steps[0].expression;
  expression = expressions::cast(expression, type_named("F32")).value();
  CHECK(error_of(fixture).what == what);
}

TEST_CASE("the place of a value that is too large for the scale of its block is its own") {
  EngineFixture fixture({{"a", shape_of({256, 100}), "F32", {"Q8_0", "Q4_K"}, false}});
  fixture.patch_source(0, (7 * 256 + 9) * 4, bytes_of_float(3e38f));
  const std::string place = "tensor 'a', row 7, column 9: a value is too large for Q";
  CHECK(error_of(fixture).what.starts_with(place));
  auto& expression = fixture.plan.steps[0].expression;
  expression = expressions::cast(expression, type_named("Q8_0")).value();
  CHECK(error_of(fixture).what.starts_with(place));
}
