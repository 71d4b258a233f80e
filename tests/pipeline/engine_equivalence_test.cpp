// The output bytes must not depend on engine, threads, budget, slab size or order, and must equal those of the kernels
// called on complete matrices.
#include "pipeline/plan/slabs.h"
#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ggufmill;
using testing::EngineFixture;
using testing::options_for;
using testing::shape_of;

namespace {

// Covers every path from source to target and the corner cases: an empty tensor, a row longer than the scratch memory
// of a worker, experts with separate importance, copies cut into pieces, the other byte order, a tensor missing from
// one output.
EngineFixture& zoo() {
  static EngineFixture fixture({
      {"embedding", shape_of({512, 300}), "BF16", {"Q8_0", "IQ4_NL", "F32"}, false},
      {"norm", shape_of({512}), "F32", {"F32", "F32", "F32"}, false},
      {"empty", shape_of({256, 0}), "F32", {"Q8_0", "F16", "F32"}, false},
      {"up", shape_of({512, 700}), "F32", {"Q4_0", "F16", ""}, true},
      {"experts", shape_of({256, 33, 7}), "F16", {"Q4_0", "IQ2_XXS", "F16"}, true},
      {"long", shape_of({100000 / 32 * 32, 5}), "F16", {"Q8_0", "F16", ""}, false},
      {"long too", shape_of({70400, 3}), "Q8_0", {"F32", "Q4_0", "Q8_0"}, false},
      {"copied", shape_of({512, 1000}), "Q8_0", {"Q8_0", "Q8_0", "Q8_0"}, false},
      {"swapped", shape_of({256, 500}), "BF16", {"BF16", "Q8_0", "F32"}, false, true},
      {"swapped copy", shape_of({256, 500}), "Q8_0", {"Q8_0", "Q8_0", ""}, false, true},
      {"twice", shape_of({256, 600}), "BF16", {"F32", "Q8_0", "F32"}, false},
      {"scalar", shape_of({1}), "F32", {"F32", "F32", "F32"}, false},
  });
  return fixture;
}

// Keeps megabytes of data out of the failure message.
bool same(const std::vector<std::string>& a, const std::vector<std::string>& b) { return a == b; }

void check_run(EngineFixture& fixture, const EngineOptions& options) {
  static const std::vector<std::string> expected = zoo().expected_outputs();
  const Result<RunReport> report = fixture.run(options);
  if (!report) FAIL(render(report.error()));
  CHECK(same(fixture.take_outputs(), expected));
}

}  // namespace

TEST_CASE("the plain loop writes what the kernels make of whole matrices") {
  EngineFixture& fixture = zoo();
  fixture.plan.limits.memory = 64 << 20;
  check_run(fixture, options_for(EngineKind::kSimple));
}

TEST_CASE("the flow graph writes the same with any number of threads") {
  EngineFixture& fixture = zoo();
  fixture.plan.limits.memory = 64 << 20;
  fixture.plan.limits.threads = GENERATE(0u, 1u, 2u, 3u, 8u);
  check_run(fixture, options_for(EngineKind::kGraph));
}

TEST_CASE("both engines write the same from the least budget upward") {
  EngineFixture& fixture = zoo();
  const double factor = GENERATE(1.0, 1.0001, 2.0, 5.0, 40.0);
  fixture.plan.limits.memory = static_cast<std::uint64_t>(static_cast<double>(fixture.plan.least_memory) * factor);
  fixture.plan.limits.threads = GENERATE(1u, 8u);
  check_run(fixture, options_for(EngineKind::kGraph));
  if (fixture.plan.limits.threads == 1) check_run(fixture, options_for(EngineKind::kSimple));
}

TEST_CASE("both engines write the same for any slab size and order") {
  EngineFixture& fixture = zoo();
  fixture.plan.limits.memory = 16 << 20;
  fixture.plan.limits.threads = 2;
  EngineOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.shuffle_seed = GENERATE(0u, 1u, 2u);
  options.slab_bytes = GENERATE(1u, 2000000u, 16000000u);
  check_run(fixture, options);
}

TEST_CASE("both ways of background I/O write the same") {
  EngineFixture& fixture = zoo();
  fixture.plan.limits.memory = 8 << 20;
  fixture.plan.limits.threads = 2;
  EngineOptions options = options_for(EngineKind::kGraph);
  options.io = GENERATE(IoKind::kAuto, IoKind::kThreads);
  check_run(fixture, options);
}

TEST_CASE("every I/O mode writes the same") {
  EngineFixture& fixture = zoo();
  if (!InputFile::open(fixture.plan.sources[0]->path, IoMode::kDirect))
    GGUFMILL_SKIP("the file system of temporary files has no direct I/O");
  fixture.plan.limits.memory = 8 << 20;
  fixture.plan.limits.threads = 2;
  fixture.plan.limits.io = GENERATE(IoMode::kCached, IoMode::kStreaming, IoMode::kDirect);
  EngineOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.io = GENERATE(IoKind::kAuto, IoKind::kThreads);
  options.slab_bytes = GENERATE(1u, 2000000u);
  check_run(fixture, options);
  fixture.plan.limits.io.reset();
}

TEST_CASE("direct I/O reads over nothing that lies beside what it reads") {
  const TempDir folder;
  std::string bytes;
  for (std::uint32_t i = 0; i < 2048; ++i) bytes.append(reinterpret_cast<const char*>(&i), sizeof i);
  write_text(folder.file("source"), bytes);
  if (!InputFile::open(folder.file("source"), IoMode::kDirect))
    GGUFMILL_SKIP("the file system of temporary files has no direct I/O");
  // The second part follows the first in memory, at the same offset as in its block of the file.
  const SourceRef source = InputFile::open(folder.file("source")).value()->describe();
  const auto part = [&](std::uint64_t offset) {
    return expressions::extent(type_named("F32"), shape_of({8}), {source, offset, 32}).value();
  };
  Model model;
  model.files.push_back(source);
  model.tensors.push_back({"stacked", expressions::stack({part(64), part(4128)}).value(), &type_named("F32"), "",
                           nullptr, nullptr, nullptr});
  Plan plan = testing::plan_for(std::move(model), {{"F32"}}, folder.path(), 1 << 20);
  plan.limits.io = IoMode::kDirect;
  REQUIRE(run_plan(plan, testing::reference_kernels(), options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple))));
  CHECK(read_text(folder.file("out-0.gguf")).substr(64) == bytes.substr(64, 32) + bytes.substr(4128, 32));
}

TEST_CASE("the report counts all bytes of the tensors") {
  const EngineFixture fixture({{"a", shape_of({256, 1000}), "F32", {"F16", "F32"}, false}});
  const RunReport report = fixture.run(options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple))).value();
  CHECK(report.bytes_read == 1024000);
  CHECK(report.bytes_written == 512000 + 1024000);
  fixture.take_outputs();
}

namespace {

std::vector<std::string> outputs_of(EngineFixture& fixture, EngineKind kind) {
  const Result<RunReport> report = fixture.run(options_for(kind));
  if (!report) FAIL(render(report.error()));
  return fixture.take_outputs();
}

}  // namespace

TEST_CASE("searched and corrected rows do not depend on the engine, the threads and the budget") {
  EngineFixture fixture({
      {"weighted", shape_of({512, 90}), "BF16", {"Q4_K", "Q2_K", "IQ4_XS"}, true},
      {"experts", shape_of({256, 11, 3}), "F16", {"Q3_K", "Q6_K", "Q4_1"}, true},
      {"long", shape_of({70400, 2}), "F16", {"Q4_0", "IQ4_NL", "Q5_K"}, false},
  });
  for (Step& step : fixture.plan.steps)
    for (Encoding& encoding : step.encodings)
      encoding.encoder =
          encoder_for({&search_method(), 1, {}, Lattice::kAuto}, *encoding.type, encoding.importance != nullptr);
  fixture.plan.limits.memory = 64 << 20;
  fixture.plan.limits.threads = 1;
  const std::vector<std::string> expected = outputs_of(fixture, EngineKind::kSimple);
  fixture.plan.limits.threads = 3;
  CHECK(same(outputs_of(fixture, EngineKind::kGraph), expected));
  fixture.plan.limits.memory = fixture.plan.least_memory;
  CHECK(same(outputs_of(fixture, EngineKind::kGraph), expected));
}
