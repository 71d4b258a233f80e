// Runs that end early, and those that go on from there.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "pipeline/api/ggufmill.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/journal.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

const Context& context() {
  static const Context one = Context::create({{}, "reference"}).value();
  return one;
}

// A model of 12 tensors, so of 12 units; two outputs, the first in three shards.
class JobFolder {
 public:
  JobFolder() {
    write_model(1);
    fs::create_directory(folder_.file("out"));
  }

  void write_model(float first) {
    GgufBuilder model;
    for (int i = 0; i < 12; ++i) model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 8});
    for (std::size_t t = 0; t < model.tensors.size(); ++t) {
      std::vector<float> values(model.tensors[t].data.size() / 4);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = first + static_cast<float>(t) * 0.01f + static_cast<float>(i * 7 % 255) * 0.001f;
      model.tensors[t].data = float_bytes(values);
    }
    model.write(path("model.gguf"));
  }

  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string out(const std::string& name) const { return folder_.file("out/" + name); }
  Names outputs() const { return names_in(folder_.file("out")); }

  Plan plan() const {
    const auto job =
        context().parse_job(fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs:\n"
                                        "  - {{gguf: {{path: {}, shard_tensors: 4}}, quantize: {{type: Q8_0}}}}\n"
                                        "  - {{gguf: {}, quantize: {{type: Q4_0}}}}\n",
                                        path("model.gguf"), out("a.gguf"), out("b.gguf")),
                            "job.yaml");
    if (!job) FAIL(render(job.error()));
    auto plan = context().plan(job.value());
    if (!plan) FAIL(render(plan.error()));
    return std::move(plan).value();
  }

  // What the files hold that a run has finished, by name.
  std::map<std::string, std::string> finished() const {
    std::map<std::string, std::string> files;
    for (const std::string& name : outputs())
      if (!name.starts_with(".")) files[name] = read_text(out(name));
    return files;
  }

 private:
  TempDir folder_;
};

RunOptions simple(bool overwrite = false) {
  RunOptions options;
  options.engine = EngineKind::kSimple;
  options.overwrite = overwrite;
  options.slab_bytes = 32 << 10;  // of one tensor
  return options;
}

RunReport ran(const Plan& plan, const RunOptions& options = simple()) {
  auto report = context().run(plan, options);
  if (!report) FAIL(render(report.error()));
  return std::move(report).value();
}

std::map<std::string, std::string> right_outputs() {
  const JobFolder folder;
  ran(folder.plan());
  REQUIRE(folder.outputs().size() == 4);
  return folder.finished();
}

// A run that is stopped at its k-th system call.
Error stopped_at(const Plan& plan, int k, RunOptions options = simple()) {
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  options.stop = &stop;
  const HookedCalls hooked([&] {
    if (++calls == k) stop = true;
    return 0;
  });
  const auto report = context().run(plan, options);
  REQUIRE(!report);
  return report.error();
}

// The system calls of a run to its end, in a folder of its own.
int calls_of_a_run() {
  static const int all = [] {
    const JobFolder folder;
    const Plan plan = folder.plan();
    std::atomic<int> calls{0};
    const HookedCalls hooked([&] { return ++calls, 0; });
    ran(plan);
    return calls.load();
  }();
  return all;
}

// Where about half of the units are done.
Error stopped_halfway(const Plan& plan, RunOptions options = simple()) {
  return stopped_at(plan, calls_of_a_run() * 2 / 3, std::move(options));
}

// Runs `body` in a process of its own, and gives what waitpid() says of its end.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

// A run that is killed before its k-th system call. False: it came to its end.
bool killed_at(const Plan& plan, int k, const RunOptions& options = simple()) {
  const int status = in_child([&] {
    std::atomic<int> calls{0};
    const HookedCalls hooked([&] { return ++calls == k ? std::raise(SIGKILL) : 0; });
    return context().run(plan, options) ? 0 : 1;
  });
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  CHECK((killed || status == 0));
  return killed;
}

}  // namespace

TEST_CASE("killed before any system call, a second run makes the right files, and nothing else is left") {
  const auto right = right_outputs();
  std::size_t kept = 0;
  int k = 1;
  for (bool killed = true; killed; ++k) {
    const JobFolder folder;
    const Plan plan = folder.plan();
    killed = killed_at(plan, k);
    if (!killed) break;
    CAPTURE(k);
    for (const auto& [name, text] : folder.finished()) CHECK((text == right.at(name)));
    kept += ran(plan).units_kept;
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
  CHECK(k > 100);
  CHECK(kept > 100);  // of earlier runs, over all k
}

TEST_CASE("killed while manifests are written, a second run writes them, and nothing else is left") {
  const auto right = right_outputs();
  int k = calls_of_a_run() * 2 / 3;
  for (bool killed = true; killed; ++k) {
    const JobFolder folder;
    Plan plan = folder.plan();
    plan.manifest = true;
    killed = killed_at(plan, k);
    CAPTURE(k);
    for (const Leftover& left : context().leftovers(plan).files) CHECK(left.of_this_plan);
    if (killed) ran(plan);
    CHECK(folder.outputs().size() == right.size() + 4);
    for (std::size_t output = 0; output < 2; ++output) CHECK(context().verify(plan.manifest_path(output)));
    for (const auto& [name, text] : right) CHECK((read_text(folder.out(name)) == text));
  }
}

TEST_CASE("killed while files that are there are replaced, all of them are old, or all are new after the next run") {
  const auto right = right_outputs();
  int k = 1;
  std::size_t half = 0;
  for (bool killed = true; killed; ++k) {
    const JobFolder folder;
    for (const auto& file : right) write_text(folder.out(file.first), "old " + file.first);
    const Plan plan = folder.plan();
    killed = killed_at(plan, k, simple(true));
    if (!killed) break;
    CAPTURE(k);
    std::size_t replaced = 0;
    for (const auto& [name, text] : folder.finished()) {
      CHECK((text == right.at(name) || text == "old " + name));
      replaced += text == right.at(name);
    }
    half += replaced != 0 && replaced != right.size();
    ran(plan, simple(true));
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
  CHECK(half != 0);
}

TEST_CASE("whatever call fails, outputs are absent or whole, and a second run makes them all") {
  const auto right = right_outputs();
  const int errno_value = GENERATE(EIO, ENOSPC, ENOMEM);
  int k = 1;
  for (bool reached = true; reached; ++k) {
    const JobFolder folder;
    const Plan plan = folder.plan();
    Status status = ok();
    {
      const FaultAt fault(k, errno_value);
      const auto report = context().run(plan, simple());
      if (!report) status = report.error();
      reached = fault.reached();
    }
    CAPTURE(k, errno_value);
    if (!status) CHECK((status.error().code == ExitCode::kIo || status.error().code == ExitCode::kTransient));
    for (const auto& [name, text] : folder.finished()) CHECK((text == right.at(name)));
    // Once all have their names: these may not be durable, or the journal may stay.
    if (folder.finished() == right) continue;
    REQUIRE(!status);
    ran(plan);
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
  CHECK(k > 100);
}

TEST_CASE("a run that is stopped says what it keeps, and a second one goes on") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const Error error = stopped_halfway(plan);
  CHECK(error.code == ExitCode::kInterrupted);
  CHECK(error.detail.find(" of 12 units of work are done and kept") != std::string::npos);
  CHECK(error.help == "the same command goes on from there, and with --discard removes it");
  CHECK(folder.finished().empty());
  const Leftovers left = context().leftovers(plan);
  CHECK(left.files.size() == 5);  // four outputs and the journal
  REQUIRE(left.units_done);
  CHECK(*left.units_done > 0);
  CHECK(left.can_go_on());
  const RunReport report = ran(plan);
  CHECK(report.units_kept == *left.units_done);
  CHECK(report.warnings.empty());
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("a run that is stopped before anything is done leaves nothing") {
  const JobFolder folder;
  CHECK(stopped_at(folder.plan(), 3).detail == "nothing was written");
  CHECK(folder.outputs().empty());
}

TEST_CASE("a run that is not to resume begins anew, and leaves nothing when it is stopped") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  RunOptions options = simple();
  options.resume = false;
  CHECK(stopped_halfway(plan, options).detail == "nothing was written");
  CHECK(folder.outputs().empty());
}

TEST_CASE("what is left is removed when that is asked for") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  REQUIRE(context().discard(context().leftovers(plan)));
  CHECK(folder.outputs().empty());
}

TEST_CASE("bytes that were damaged after they were written are written again") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  const std::string temporary = temporary_path(plan.outputs[1].files[0].path, identity_of(plan));
  const auto& first = plan.outputs[1].files[0].tensors[0];
  std::string text = read_text(temporary);
  text[first.offset + 5] ^= 1;
  write_text(temporary, text);
  const RunReport report = ran(plan);
  CHECK(report.warnings ==
        Names{"units of work of the earlier run that were damaged or not on the disk, and were done again: 1"});
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("a journal that cannot be used makes the run begin anew, which it says") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::string path = journal_path(plan, identity_of(plan));
  const auto [damage, why] = GENERATE(values<std::pair<const char*, const char*>>(
      {{"text", "its journal cannot be used: its first line is not that of a journal"},
       {"version", "its journal cannot be used: it is of another version of journals"},
       {"gone", "what it had written of"}}));
  stopped_halfway(plan);
  std::string text = read_text(path);
  if (damage == std::string("text")) text = "x" + text.substr(0, 5);
  if (damage == std::string("version")) text.replace(text.find("\"version\":1"), 11, "\"version\":2");
  if (damage == std::string("gone")) fs::remove(temporary_path(plan.outputs[1].files[0].path, identity_of(plan)));
  write_text(path, text);
  const RunReport report = ran(plan);
  CHECK(report.units_kept == 0);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find(why) != std::string::npos);
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("a journal that is damaged after some units is believed up to there") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::string path = journal_path(plan, identity_of(plan));
  stopped_halfway(plan);
  const std::string text = read_text(path);
  const JournalText journal = read_journal(text, path).value();
  REQUIRE(journal.done.size() > 3);
  for (const std::size_t from_end : {5u, 60u}) {
    std::string damaged = text;
    damaged[text.size() - from_end] ^= 1;
    const JournalText read = read_journal(damaged, path).value();
    CHECK(read.done.size() < journal.done.size());
    CHECK(read.is_damaged);
  }
  for (std::size_t bytes = text.find('\n') + 1; bytes < text.size(); ++bytes) {
    const JournalText read = read_journal(text.substr(0, bytes), path).value();
    CHECK(read.done.size() <= journal.done.size());
    CHECK_FALSE(read.is_damaged);
  }
}

TEST_CASE("of a journal that is longer than any no more is read, and what it says at its beginning counts") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::string path = journal_path(plan, identity_of(plan));
  stopped_halfway(plan);
  fs::resize_file(path, std::uint64_t{1} << 40);
  const RunReport report = ran(plan);
  CHECK(report.units_kept > 0);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("the journal is damaged at byte") != std::string::npos);
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("what a run of another plan left is named, and why it is another's") {
  JobFolder folder;
  stopped_halfway(folder.plan());
  folder.write_model(2);
  const Plan plan = folder.plan();
  const Leftovers left = context().leftovers(plan);
  CHECK(left.files.size() == 5);
  CHECK_FALSE(left.can_go_on());
  std::string since;
  for (const Leftover& file : left.files) since += file.other_since;
  CHECK(since == fmt::format("'{}' has changed since", folder.path("model.gguf")));
  ran(plan);
  CHECK(folder.outputs().size() == 4 + 5);  // never removed silently
}

TEST_CASE("a file that cannot get its name: the others' are taken back, and all is kept") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const bool overwrite = GENERATE(false, true);
  const std::string last = plan.outputs[1].files[0].path, first = plan.outputs[0].files[0].path;
  if (overwrite) write_text(first, "old");
  std::optional<Error> error;
  {
    // A folder that appears when the others have their names.
    const HookedCalls hooked([&] {
      if (fs::exists(plan.outputs[0].files[2].path)) fs::create_directory(last);
      return 0;
    });
    const auto report = context().run(plan, simple(overwrite));
    REQUIRE(!report);
    error = report.error();
  }
  CHECK(error->code == ExitCode::kUsage);
  CHECK(error->detail == "12 of 12 units of work are done and kept");
  fs::remove(last);
  CHECK(folder.finished() == (overwrite ? std::map<std::string, std::string>{{fs::path(first).filename(), "old"}}
                                        : std::map<std::string, std::string>{}));
  CHECK(ran(plan, simple(overwrite)).units_kept == 12);
  CHECK((folder.finished() == right_outputs()));
  CHECK(folder.outputs().size() == 4);
}

TEST_CASE("two runs of one plan at once: the second is told to wait, and harms nothing") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  std::optional<Error> second;
  RunOptions options = simple();
  options.progress = [&](const Progress&) {
    if (second) return;
    const auto other = context().run(plan, simple());
    second = other ? Error{} : other.error();
  };
  ran(plan, options);
  REQUIRE(second);
  CHECK(second->code == ExitCode::kTransient);
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("killed at any time over and over, a run on all threads comes to its end") {
  constexpr std::size_t kKills = 40;
  const auto right = right_outputs();
  const auto run_in_child = [](const Plan& plan) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child != 0) return child;
    const auto own = Context::create({{}, "reference"});
    const auto report = own.value().run(plan, {});
    if (!report) std::cerr << render(report.error());
    ::_exit(report ? 0 : 1);
  };
  const auto end_of = [](pid_t child) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
  };
  const auto start = std::chrono::steady_clock::now();
  {
    const JobFolder folder;
    REQUIRE(end_of(run_in_child(folder.plan())) == 0);
  }
  const std::chrono::duration<double> usual = std::chrono::steady_clock::now() - start;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> moments(0, 1.2);
  for (std::size_t kills = 0; kills < kKills;) {
    const JobFolder folder;
    const Plan plan = folder.plan();
    for (int status = SIGKILL; WIFSIGNALED(status);) {
      const pid_t child = run_in_child(plan);
      if (kills < kKills) {
        std::this_thread::sleep_for(usual * moments(random));
        ::kill(child, SIGKILL);
      }
      status = end_of(child);
      kills += WIFSIGNALED(status) ? 1 : 0;
      for (const auto& [name, text] : folder.finished()) CHECK((text == right.at(name)));
      if (folder.finished() == right && folder.outputs().size() == right.size()) break;  // killed when it was done
      if (!WIFSIGNALED(status)) CHECK(status == 0);
    }
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
}
