// Failing system calls and stopped runs: outputs are absent, old or whole, and no temporary is left.
#include <atomic>
#include <filesystem>

#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"

using namespace ggufmill;
using testing::EngineFixture;
using testing::options_for;
using testing::shape_of;

namespace {

RunOptions small_slabs(EngineKind engine) {
  RunOptions options = options_for(engine);
  options.io = IoKind::kThreads;  // whose system calls can be made to fail
  options.slab_bytes = 1;
  return options;
}

std::vector<testing::TensorRecipe> two_outputs(std::shared_ptr<const Importance> importance = nullptr) {
  return {{"a", shape_of({512, 20}), "F32", {"Q8_0", "F16"}, importance},
          {"b", shape_of({512, 20}), "F16", {"Q4_0", "F16"}, importance}};
}

// Every output is whole or not there; nothing else is there but the source. How many are whole.
std::size_t check_leftovers(const EngineFixture& fixture, const std::vector<std::string>& expected) {
  std::size_t whole = 0;
  for (const std::string& name : fixture.names()) {
    if (name == "source.gguf") continue;
    ++whole;
    const bool is_whole = (name == "out-0.gguf" && read_text(fixture.path(name)) == expected[0]) ||
                          (name == "out-1.gguf" && read_text(fixture.path(name)) == expected[1]);
    INFO(name);
    CHECK(is_whole);
    std::filesystem::remove(fixture.path(name));
  }
  return whole;
}

// Does something the first time weights are asked for: in the midst of a run.
class Hook final : public Importance {
 public:
  explicit Hook(std::function<void()> action) : action_(std::move(action)) {}
  Result<std::vector<float>> weights(std::uint64_t) const override {
    if (!done_.exchange(true)) action_();
    return std::vector<float>(512, 1.0f);
  }
  std::string fingerprint() const override { return "hook"; }

 private:
  std::function<void()> action_;
  mutable std::atomic<bool> done_{false};
};

}  // namespace

TEST_CASE("whichever system call fails, outputs are whole or absent") {
  EngineFixture fixture(two_outputs());
  fixture.plan.limits.threads = 2;
  const std::vector<std::string> expected = fixture.expected_outputs();
  const RunOptions options = small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  bool reached = true;
  for (int k = 1; reached; ++k) {
    INFO("call " << k);
    FaultAt fault(k, EIO);
    const Result<RunReport> report = fixture.run(options);
    reached = fault.reached();
    const std::size_t whole = check_leftovers(fixture, expected);
    if (report) CHECK(whole == 2);
    if (!report) CHECK(report.error().code != ExitCode::kInternal);
  }
}

TEST_CASE("calls that transfer half of what they should, or are interrupted, do no harm") {
  EngineFixture fixture(two_outputs());
  fixture.plan.limits.threads = 2;
  std::atomic<unsigned> count{0};
  const int outcome = GENERATE(kHalf, EINTR);
  const HookedCalls calls([&] { return ++count % 3 == 0 ? outcome : 0; });
  const Result<RunReport> report = fixture.run(small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple)));
  if (!report) FAIL(render(report.error()));
  CHECK(check_leftovers(fixture, fixture.expected_outputs()) == 2);
}

TEST_CASE("a source that is cut short during the run is an error of the input") {
  const EngineFixture* running = nullptr;
  const auto cut = [&] { std::filesystem::resize_file(running->path("source.gguf"), 50000); };
  EngineFixture fixture(two_outputs(std::make_shared<Hook>(cut)), 100000);
  running = &fixture;
  const Result<RunReport> report = fixture.run(small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple)));
  REQUIRE(!report);
  CHECK(report.error().code == ExitCode::kBadInput);
  CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
}

TEST_CASE("a run that is stopped leaves nothing, before it starts and in its midst") {
  std::atomic<bool> stop{false};
  EngineFixture fixture(two_outputs(std::make_shared<Hook>([&] { stop = true; })));
  RunOptions options = small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.stop = &stop;
  for (int run = 0; run < 2; ++run) {
    const Result<RunReport> report = fixture.run(options);
    REQUIRE(!report);
    CHECK(report.error().code == ExitCode::kInterrupted);
    CHECK(report.error().detail == "nothing was written");
    CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
  }
}

TEST_CASE("outputs that were finished before a later one fails stay, and the error counts them") {
  EngineFixture fixture(two_outputs());
  const std::string second = fixture.path("out-1.gguf");
  RunOptions options = small_slabs(EngineKind::kSimple);
  options.progress = [&](const Progress& progress) {
    if (progress.bytes_written == 512 * 20 * 2 + 512 * 20 / 32 * 18 + 512 * 20 / 32 * 34 + 512 * 20 * 2)
      write_text(second, "somebody else's");  // after the check of the targets, before the first is sealed
  };
  const Result<RunReport> report = fixture.run(options);
  REQUIRE(!report);
  CHECK(report.error().detail.find("1 of 2 output files had been finished and stay") != std::string::npos);
  CHECK(read_text(second) == "somebody else's");
  CHECK(read_text(fixture.path("out-0.gguf")) == fixture.expected_outputs()[0]);
}

TEST_CASE("progress is told at the end whatever the pace, and names the tensor that was finished last") {
  EngineFixture fixture(two_outputs());
  std::vector<Progress> told;
  RunOptions options = small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  std::vector<std::uint64_t> file_bytes;
  options.progress = [&](const Progress& progress) {
    told.push_back(progress);
    file_bytes.assign(progress.file_bytes.begin(), progress.file_bytes.end());
  };
  const RunReport report = fixture.run(options).value();
  REQUIRE(!told.empty());
  CHECK(told.back().bytes_read == report.bytes_read);
  CHECK(told.back().bytes_written == report.bytes_written);
  CHECK(file_bytes == std::vector<std::uint64_t>{320 * (34 + 18), 512 * 20 * (2 + 2)});
  REQUIRE(told.back().tensor != nullptr);
  CHECK((*told.back().tensor == "a" || *told.back().tensor == "b"));
}
