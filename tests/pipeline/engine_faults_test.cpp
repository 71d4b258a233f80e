// Tests failing system calls and stopped runs: outputs must be absent, old or complete, and no temporary file may
// remain.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>

#include "pipeline/io/platform/filesystem.h"
#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"

using namespace ggufmill;
using testing::EngineFixture;
using testing::options_for;
using testing::shape_of;

namespace {

EngineOptions small_slabs(EngineKind engine) {
  EngineOptions options = options_for(engine);
  options.io = IoKind::kThreads;  // its system calls can be made to fail
  options.slab_bytes = 1;
  return options;
}

std::vector<testing::TensorRecipe> two_outputs() {
  return {{"a", shape_of({512, 20}), "F32", {"Q8_0", "F16"}, false},
          {"b", shape_of({512, 20}), "F16", {"Q4_0", "F16"}, false}};
}

// Checks that every output is complete or missing, and that there are no other files except the source. Returns the
// number of complete outputs.
std::size_t check_leftovers(const EngineFixture& fixture, const std::vector<std::string>& expected) {
  std::size_t whole = 0;
  for (const std::string& name : fixture.names()) {
    if (name == "source.gguf") continue;
    ++whole;
    const bool is_whole = (name == "out-0.gguf" && read_text(fixture.path(name)) == expected[0]) ||
                          (name == "out-1.gguf" && read_text(fixture.path(name)) == expected[1]);
    INFO(name);
    CHECK(is_whole);
    fs::remove(fixture.path(name));
  }
  return whole;
}

// Calls `action` in the middle of a run: after two thirds of its system calls.
Result<RunReport> run_with(const EngineFixture& fixture, const EngineOptions& options,
                           const std::function<void()>& action) {
  std::atomic<unsigned> calls{0};
  {
    const HookedCalls counted([&] { return ++calls, 0; });
    REQUIRE(fixture.run(options));
  }
  fixture.take_outputs();
  const unsigned at = calls.exchange(0) * 2 / 3;
  const HookedCalls hooked([&] {
    if (++calls == at) action();
    return 0;
  });
  return fixture.run(options);
}

}  // namespace

TEST_CASE("whichever system call fails, outputs are whole or absent") {
  EngineFixture fixture(two_outputs());
  fixture.plan.limits.threads = 2;
  const std::vector<std::string> expected = fixture.expected_outputs();
  const EngineOptions options = small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
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
  // as<int>: without it, Catch2 would deduce references for kHalf, and the reference to the second value would dangle.
  const int outcome = GENERATE(as<int>{}, kHalf, EINTR);
  const HookedCalls calls([&] { return ++count % 3 == 0 ? outcome : 0; });
  const Result<RunReport> report = fixture.run(small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple)));
  if (!report) FAIL(render(report.error()));
  CHECK(check_leftovers(fixture, fixture.expected_outputs()) == 2);
}

TEST_CASE("a source that is cut short during the run is an error of the input") {
  EngineFixture fixture(two_outputs());
  const auto cut = [&] { fs::resize_file(fixture.path("source.gguf"), 20000); };
  const Result<RunReport> report =
      run_with(fixture, small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple)), cut);
  REQUIRE(!report);
  CHECK(report.error().code == ExitCode::kBadInput);
  CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
}

TEST_CASE("a source that is written to during the run is an error of the input") {
  EngineFixture fixture(two_outputs());
  const auto write = [&] {
    std::fstream file(fixture.path("source.gguf"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(50000);
    file.put('x');
  };
  const Result<RunReport> report =
      run_with(fixture, small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple)), write);
  REQUIRE(!report);
  CHECK(report.error().code == ExitCode::kBadInput);
  CHECK(report.error().what == "the file changed since its header was read");
  CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
}

TEST_CASE("a run that is stopped leaves nothing, before it starts and in its midst") {
  EngineFixture fixture(two_outputs());
  std::atomic<bool> stop{false};
  EngineOptions options = small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.stop = &stop;
  const auto check = [&](const Result<RunReport>& report) {
    REQUIRE(!report);
    CHECK(report.error().code == ExitCode::kInterrupted);
    CHECK(report.error().detail == "nothing was written");
    CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
  };
  check(run_with(fixture, options, [&] { stop = true; }));
  check(fixture.run(options));
}

TEST_CASE("a run stops after some units, and another resumes with the others") {
  EngineFixture fixture(
      {{"a", shape_of({1 << 20, 20}), "F32", {"F16"}, false}, {"b", shape_of({512, 20}), "F16", {"Q4_0"}, false}});
  REQUIRE(fixture.plan.units.size() > 2);
  EngineOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.units = UnitRange{1, fixture.plan.units.size()};
  options.leave = true;
  REQUIRE(fixture.run(options));
  CHECK(fixture.names().size() == 2);  // the source and the unfinished output
  CHECK(std::ranges::count(fixture.names(), "out-0.gguf") == 0);
  options.units = UnitRange{0, 1};
  options.leave = false;
  options.attach = true;
  REQUIRE(fixture.run(options));
  const bool same = fixture.take_outputs() == fixture.expected_outputs();
  CHECK(same);
  CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
}

TEST_CASE("units that are done in a ledger are skipped, and it records the others") {
  class Known final : public Ledger {
   public:
    bool is_done(std::size_t unit) const override { return unit == 0; }
    Status done(std::size_t unit, std::span<const std::uint64_t>) override { return units.push_back(unit), ok(); }
    std::vector<std::size_t> units;
  } ledger;
  EngineFixture fixture(two_outputs());
  EngineOptions options = small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.ledger = &ledger;
  REQUIRE(fixture.run(options));
  CHECK(ledger.units == std::vector<std::size_t>{1});
  std::vector<std::string> expected = fixture.expected_outputs();
  for (std::size_t o = 0; o < 2; ++o) {
    const auto& place = fixture.plan.outputs[o].files[0].tensors[0];
    expected[o].replace(place.offset, place.bytes, std::string(place.bytes, '\0'));  // not written: zeros
  }
  const bool same = fixture.take_outputs() == expected;
  CHECK(same);
}

TEST_CASE("files that an earlier run left are written again unless the run attaches to them") {
  EngineFixture fixture(two_outputs());
  EngineOptions options = small_slabs(EngineKind::kSimple);
  options.leave = true;
  REQUIRE(fixture.run(options));
  CHECK(fixture.names().size() == 3);
  options.leave = false;
  REQUIRE(fixture.run(options));
  CHECK(check_leftovers(fixture, fixture.expected_outputs()) == 2);
}

TEST_CASE("two runs of one plan at once: one is refused") {
  EngineFixture fixture(two_outputs());
  EngineOptions options = small_slabs(EngineKind::kSimple);
  std::optional<Error> second;
  options.progress = [&](const Progress&) {
    if (second) return;
    const Result<RunReport> other = fixture.run(small_slabs(EngineKind::kSimple));
    second = other ? Error{} : other.error();
  };
  REQUIRE(fixture.run(options));
  REQUIRE(second);
  CHECK(second->code == ExitCode::kTransient);
  CHECK(second->what == "another run is writing this output now");
  CHECK(check_leftovers(fixture, fixture.expected_outputs()) == 2);
}

TEST_CASE("where one output cannot get its name, the others get none") {
  EngineFixture fixture(two_outputs());
  const std::string second = fixture.path("out-1.gguf");
  EngineOptions options = small_slabs(EngineKind::kSimple);
  options.progress = [&](const Progress& progress) {
    if (progress.bytes_written == 512 * 20 * 2 + 512 * 20 / 32 * 18 + 512 * 20 / 32 * 34 + 512 * 20 * 2)
      write_text(second, "somebody else's");  // after the check of the targets, before the first is sealed
  };
  const Result<RunReport> report = fixture.run(options);
  REQUIRE(!report);
  CHECK(report.error().what == "the output already exists");
  CHECK(read_text(second) == "somebody else's");
  CHECK(fixture.names() == std::vector<std::string>{"out-1.gguf", "source.gguf"});
}

TEST_CASE("progress is reported at the end whatever the pace, and names the tensor that was finished last") {
  EngineFixture fixture(two_outputs());
  std::vector<Progress> described;
  EngineOptions options = small_slabs(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  std::vector<std::uint64_t> file_bytes;
  options.progress = [&](const Progress& progress) {
    described.push_back(progress);
    file_bytes.assign(progress.file_bytes.begin(), progress.file_bytes.end());
  };
  const RunReport report = fixture.run(options).value();
  REQUIRE(!described.empty());
  CHECK(described.back().bytes_read == report.bytes_read);
  CHECK(described.back().bytes_written == report.bytes_written);
  CHECK(file_bytes == std::vector<std::uint64_t>{320 * (34 + 18), 512 * 20 * (2 + 2)});
  REQUIRE(described.back().tensor != nullptr);
  CHECK((*described.back().tensor == "a" || *described.back().tensor == "b"));
}
