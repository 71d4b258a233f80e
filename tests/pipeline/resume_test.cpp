// Tests interrupted runs and runs that resume them.

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "pipeline/core/option_reference.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/system.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/journal.h"
#include "pipeline/journal/output_claim.h"
#include "pipeline/plan/written.h"
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
using testing::stopped_at;
using testing::stopped_halfway;
using testing::TestOptions;
using testing::try_run;
using Names = std::vector<std::string>;

TEST_CASE("a run that is stopped reports the files that it keeps, and a second one resumes") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const Error error = stopped_halfway(plan);
  CHECK(error.code == ExitCode::kInterrupted);
  CHECK(error.detail.find(" of 12 units of work are done and kept") != std::string::npos);
  CHECK(with_plain_options(error.help) ==
        "run the same command again to resume, or with discard: true to remove the partial output");
  CHECK(folder.finished().empty());
  const Leftovers left = resume_context().leftovers(plan);
  CHECK(left.files.size() == 5);  // four outputs and the journal
  REQUIRE(left.units_done);
  CHECK(*left.units_done > 0);
  CHECK(left.can_resume());
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

TEST_CASE("a run whose outputs' folder was removed keeps nothing, and does not say that it does") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  std::atomic<bool> stop{false};
  TestOptions options = simple();
  options.stop = &stop;
  std::atomic<int> calls{0};
  const int half = calls_of_a_run() * 2 / 3;
  const HookedCalls hooked([&] {
    if (++calls == half) {
      fs::remove_all(folder.path("out"));
      stop = true;
    }
    return 0;
  });
  const auto report = try_run(resume_context(), plan, options);
  REQUIRE(!report);
  CHECK(render(report.error()).find("kept") == std::string::npos);
}

TEST_CASE("whatever the length of an output's name, all that was left of it is found") {
  const JobFolder folder;
  const std::size_t length = GENERATE(10, 200, 210, 220, 250);
  const std::string output = folder.path(std::string(length, 'n') + ".gguf");
  const auto job = resume_context().parse_job(
      fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [{{gguf: {}}}]\n", folder.path("model.gguf"), output),
      "job.yaml");
  REQUIRE(job);
  const Plan plan = resume_context().plan(job.value()).value();
  const std::string identity = identity_of(plan);
  write_text(temporary_path(output, identity), "weights");
  write_text(journal_path(plan, identity), "units");
  write_text(temporary_path(output, identity + ".q5pelp"), "weights");
  write_text(claim_path(output, identity + ".q5pelp"), "claim");
  CHECK(resume_context().leftovers(plan).files.size() == 4);
}

TEST_CASE("a run that is not to resume starts over, and leaves nothing when it is stopped") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  TestOptions options = simple();
  options.resume = false;
  CHECK(stopped_halfway(plan, options).detail == "nothing was written");
  CHECK(folder.outputs().empty());
}

TEST_CASE("what is left is removed when that is asked for") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  REQUIRE(resume_context().discard(resume_context().leftovers(plan)));
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
        Names{"units of work of the earlier run that were damaged or missing on disk and were redone: 1"});
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("a journal that cannot be used makes the run start over, with a warning") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::string path = journal_path(plan, identity_of(plan));
  const auto [damage, why] = GENERATE(values<std::pair<const char*, const char*>>(
      {{"text", "its journal cannot be used: its first line is not a journal header"},
       {"version", "its journal cannot be used: its version is not supported"},
       {"gone", "its partial output for"}}));
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

TEST_CASE("a run reports why it starts over before it writes, if a callback is set") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  write_text(journal_path(plan, identity_of(plan)), "x");
  std::vector<std::string> described;
  TestOptions options = simple();
  options.starts_over = [&](const std::string& why) {
    CHECK_FALSE(fs::exists(plan.outputs[0].files[0].path));
    described.push_back(why);
  };
  const auto report = try_run(resume_context(), plan, options);
  REQUIRE(report);
  REQUIRE(described.size() == 1);
  CHECK(described[0].starts_with("cannot resume an earlier run of this plan: its journal cannot be used"));
  CHECK(report.value().warnings.empty());
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
  const Leftovers left = resume_context().leftovers(plan);
  CHECK(left.files.size() == 5);
  CHECK_FALSE(left.can_resume());
  std::string since;
  for (const Leftover& file : left.files) since += file.other_since;
  CHECK(since == fmt::format("'{}' has changed since", folder.path("model.gguf")));
  ran(plan);
  CHECK(folder.outputs().size() == 4 + 5);  // leftover files are never removed silently
}

TEST_CASE("a file that cannot get its name: the others' are taken back, and all is kept") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const bool overwrite = GENERATE(false, true);
  if (overwrite && !kIsPosix) GGUFMILL_SKIP("a replaced file cannot be restored");
  const std::string last = plan.outputs[1].files[0].path, first = plan.outputs[0].files[0].path;
  if (overwrite) write_text(first, "old");
  std::optional<Error> error;
  {
    // Creates a folder with the name of the last file once the others have their names.
    const HookedCalls hooked([&] {
      if (fs::exists(plan.outputs[0].files[2].path)) fs::create_directory(last);
      return 0;
    });
    const auto report = try_run(resume_context(), plan, simple(overwrite));
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

TEST_CASE("two runs of one plan at once: the second is refused, and harms nothing") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  std::optional<Error> second;
  TestOptions options = simple();
  options.progress = [&](const Progress&) {
    if (second) return;
    const auto other = try_run(resume_context(), plan, simple());
    second = other ? Error{} : other.error();
  };
  ran(plan, options);
  REQUIRE(second);
  CHECK(second->code == ExitCode::kTransient);
  CHECK((folder.finished() == right_outputs()));
}

namespace {

std::string temporary_of(const Plan& plan, std::size_t output = 1) {
  return temporary_path(plan.outputs[output].files[0].path, identity_of(plan));
}

// Changes a byte of the first tensor of the second output, and restores the modification time of the file.
void damage(const Plan& plan) {
  const std::string path = temporary_of(plan);
  const auto time = fs::last_write_time(path);
  std::string text = read_text(path);
  text[plan.outputs[1].files[0].tensors[0].offset + 5] ^= 1;
  wait_for_later_time(path);
  write_text(path, text);
  fs::last_write_time(path, time);
}

}  // namespace

TEST_CASE("what something else changes between write and seal is found by its inode's time, and written again") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  TestOptions options = simple();
  options.resume = GENERATE(true, false);
  options.when_sealed = [&](OutputStore&) -> Status { return damage(plan), ok(); };
  const auto report = try_run(resume_context(), plan, options);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kIo);
  CHECK(report.error().what == "another program changed the file while it was being written");
  CHECK(folder.finished().empty());
  ran(plan);
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("a file that is cut short, and grows again as it is written, is never published with a hole") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  TestOptions options = simple();
  bool is_done = false;
  options.progress = [&](const Progress& now) {
    if (now.bytes_written < plan.outputs[1].files[0].bytes || std::exchange(is_done, true)) return;
    fs::resize_file(temporary_of(plan), 0);
  };
  const auto report = try_run(resume_context(), plan, options);
  REQUIRE(is_done);
  if (!report) CHECK(report.error().code == ExitCode::kIo);
  if (report) CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("what something else writes between the tensors is found, and nothing of it is kept") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  TestOptions options = simple();
  options.when_sealed = [&](OutputStore&) -> Status {
    std::string text = read_text(temporary_of(plan));
    text[10] ^= 1;
    write_text(temporary_of(plan), text);
    return ok();
  };
  const auto report = try_run(resume_context(), plan, options);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kIo);
  CHECK(folder.outputs().empty());
}

TEST_CASE("a journal that is not this user's alone is left alone, and the run starts over") {
  if (!kIsPosix) GGUFMILL_SKIP("files have no modes");
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  const std::string path = journal_path(plan, identity_of(plan)), text = read_text(path);
  const bool links = GENERATE(true, false);
  if (links)
    fs::create_hard_link(path, path + ".other");
  else
    fs::permissions(path, fs::perms(0664));
  const RunReport report = ran(plan);
  CHECK(report.units_kept == 0);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("this file is not used (") != std::string::npos);
  CHECK(read_text(path) == text);
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("outputs that are not this user's alone are not resumed") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  stopped_halfway(plan);
  const std::string path = temporary_of(plan), victim = path + ".victim";
  fs::create_hard_link(path, victim);
  const std::string text = read_text(victim);
  const RunReport report = ran(plan);
  CHECK(report.units_kept == 0);
  CHECK(report.warnings.size() == 2);  // why it starts over, and that the file gets another temporary name
  CHECK(read_text(victim) == text);
  CHECK((folder.finished() == right_outputs()));
}

TEST_CASE("a source that was rewritten in place and given its old time back is not resumed from") {
  if (!kIsPosix) GGUFMILL_SKIP("files have no time of change");
  JobFolder folder;
  stopped_halfway(folder.plan());
  const std::string source = folder.path("model.gguf");
  const auto time = fs::last_write_time(source);
  write_text(source, read_text(source));
  fs::last_write_time(source, time);
  const RunReport report = ran(folder.plan());
  CHECK(report.units_kept == 0);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("its inode has changed (ctime)") != std::string::npos);
}

TEST_CASE("a source that was rewritten since the plan was made, and given its old time back, is refused") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::string source = folder.path("model.gguf");
  const auto time = fs::last_write_time(source);
  write_text(source, read_text(source));
  fs::last_write_time(source, time);
  const auto report = try_run(resume_context(), plan, simple());
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kBadInput);
}

TEST_CASE("a source that is rewritten during the run, and given its old time back, is refused") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::string source = folder.path("model.gguf");
  const auto time = fs::last_write_time(source);
  TestOptions options = simple();
  bool is_done = false;
  options.progress = [&](const Progress&) {
    if (std::exchange(is_done, true)) return;
    write_text(source, read_text(source));
    fs::last_write_time(source, time);
  };
  const auto report = try_run(resume_context(), plan, options);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kBadInput);
  CHECK(folder.finished().empty());
}
