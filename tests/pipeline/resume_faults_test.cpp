// Kills runs, or makes their system calls fail, at every point.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <random>
#include <thread>

#include "tests/pipeline/resume_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"

using namespace ggufmill;
using testing::calls_of_a_run;
using testing::JobFolder;
using testing::ran;
using testing::resume_context;
using testing::right_outputs;
using testing::simple;
using testing::TestOptions;
using testing::try_run;

namespace {

// Runs `body` in a child process and returns its wait status.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

// Starts a run that is killed before its k-th system call. Returns false if it ran to completion.
bool killed_at(const Plan& plan, int k, const TestOptions& options = simple()) {
  const int status = in_child([&] {
    std::atomic<int> calls{0};
    const HookedCalls hooked([&] { return ++calls == k ? std::raise(SIGKILL) : 0; });
    return try_run(resume_context(), plan, options) ? 0 : 1;
  });
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  CHECK((killed || status == 0));
  return killed;
}

// Generates options for the simple engine, and for the graph engine with threads for everything, whose calls have a
// different order in every run.
TestOptions with_faults() {
  TestOptions options = simple();
  options.engine = GENERATE(EngineKind::kSimple, EngineKind::kGraph);
  options.io = IoKind::kThreads;  // its system calls can be made to fail
  return options;
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
    CHECK(resume_context().check(plan, false).empty());
    kept += ran(plan).units_kept;
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
  CHECK(k > 100);
  CHECK(kept > 100);  // from earlier runs, over all k
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
    for (const Leftover& left : resume_context().leftovers(plan).files) CHECK(left.of_this_plan);
    if (killed) CHECK(resume_context().check(plan, false).empty());
    if (killed) ran(plan);
    CHECK(folder.outputs().size() == right.size() + 4);
    for (std::size_t output = 0; output < 2; ++output) CHECK(resume_context().verify(plan.manifest_path(output)));
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
  const int errno_value = GENERATE(EIO, ENOSPC, ENOMEM, EDQUOT, EROFS);
  const TestOptions options = with_faults();
  int k = 1;
  for (bool reached = true; reached; ++k) {
    const JobFolder folder;
    Plan plan = folder.plan();
    plan.limits.threads = 2;
    Status status = ok();
    {
      const FaultAt fault(k, errno_value);
      const auto report = try_run(resume_context(), plan, options);
      if (!report) status = report.error();
      reached = fault.reached();
    }
    CAPTURE(k, errno_value);
    if (!status) CHECK((status.error().code == ExitCode::kIo || status.error().code == ExitCode::kTransient));
    for (const auto& [name, text] : folder.finished()) CHECK((text == right.at(name)));
    // Once all files have their names, a failure means only that the names may not be durable or that the journal
    // remains.
    if (folder.finished() == right) continue;
    REQUIRE(!status);
    ran(plan);
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
  CHECK(k > 100);
}

TEST_CASE("once a disk is full, over its quota, read-only or gone, outputs are absent or whole until it is back") {
  const auto right = right_outputs();
  const int errno_value = GENERATE(EIO, ENOSPC, EDQUOT, EROFS);
  const TestOptions options = with_faults();
  int k = 1;
  for (bool reached = true; reached; ++k) {
    const JobFolder folder;
    Plan plan = folder.plan();
    plan.limits.threads = 2;
    Status status = ok();
    {
      std::atomic<int> calls{0};
      const HookedCalls hooked([&] { return ++calls >= k ? errno_value : 0; });
      const auto report = try_run(resume_context(), plan, options);
      if (!report) status = report.error();
      reached = calls >= k;
    }
    CAPTURE(k, errno_value);
    if (!status) CHECK((status.error().code == ExitCode::kIo || status.error().code == ExitCode::kTransient));
    for (const auto& [name, text] : folder.finished()) CHECK((text == right.at(name)));
    const bool all_named = folder.finished() == right;
    // The journal may remain if it could not be removed at the end.
    if (!status || folder.outputs().size() != right.size()) ran(plan, simple(all_named));
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
  CHECK(k > 100);
}

TEST_CASE("killed at any time over and over, a run on all threads comes to its end") {
  constexpr std::size_t kKills = 40;
  const auto right = right_outputs();
  const auto run_in_child = [](const Plan& plan) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child != 0) return child;
    const auto own = Context::create({{}, "reference"});
    const auto report = try_run(own.value(), plan, {});
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
      if (folder.finished() == right && folder.outputs().size() == right.size()) break;  // killed after it had finished
      if (!WIFSIGNALED(status)) CHECK(status == 0);
    }
    CHECK((folder.finished() == right));
    CHECK(folder.outputs().size() == right.size());
  }
}
