#include "pipeline/journal/leftovers.h"

#include <algorithm>

#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/journal.h"
#include "pipeline/journal/output_claim.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// A plan with the outputs out-0.gguf and out-1.gguf, and files that a run of it may leave.
struct Folder {
  TempDir folder;
  Plan plan = plan_of({{"a", shape_of({32, 4}), "F32", {"F16", "BF16"}, false}}, folder.path());
  std::string identity = identity_of(plan);

  std::string output(int i) const { return plan.outputs[static_cast<std::size_t>(i)].files[0].path; }
  void leave(const std::string& path, const std::string& text = "data") const { write_text(path, text); }
  void leave_journal(const std::string& line, const std::vector<std::uint32_t>& units) const {
    std::string text = line;
    for (const std::uint32_t unit : units) text += journal_record(unit, std::vector<std::uint64_t>{1, 2}, line);
    write_text(journal_path(plan, identity), text);
  }
  // Leaves an output of a cluster job in `job`, which exists.
  void leave_job_output(const TempDir& job) const {
    write_text(job.file(kJobFile), "{\"identity\": \"" + identity + "\", \"id\": \"abcdef\"}");
    const std::string key = identity + ".abcdef";
    leave(temporary_path(output(0), key));
    REQUIRE(write_claim(output(0), {key, job.path(), job.path()}));
  }
};

}  // namespace

TEST_CASE("a folder without leftover files has none") {
  const Folder folder;
  folder.leave(folder.output(0));  // an output is not a leftover file
  const Leftovers found = find_leftovers(folder.plan);
  CHECK(found.files.empty());
  CHECK(found.units == 1);
  CHECK_FALSE(found.units_done);
  CHECK_FALSE(found.can_resume());
}

TEST_CASE("a temporary file of the plan is found, with its output and size") {
  const Folder folder;
  folder.leave(temporary_path(folder.output(1), folder.identity));
  const Leftovers found = find_leftovers(folder.plan);
  REQUIRE(found.files.size() == 1);
  CHECK(found.files[0].output == folder.output(1));
  CHECK(found.files[0].bytes == 4);
  CHECK(found.files[0].of_this_plan);
}

TEST_CASE("a temporary file of another plan is found as that") {
  const Folder folder;
  folder.leave(temporary_path(folder.output(0), std::string(folder.identity.size(), '0')));
  const Leftovers found = find_leftovers(folder.plan);
  REQUIRE(found.files.size() == 1);
  CHECK_FALSE(found.files[0].of_this_plan);
}

TEST_CASE("the journal of the plan shows how many units are done, each counted once") {
  const Folder folder;
  folder.leave_journal(journal_header(folder.plan, folder.identity), {0, 0});
  const Leftovers found = find_leftovers(folder.plan);
  CHECK(found.units_done == 1u);
  CHECK(found.can_resume());
}

TEST_CASE("a journal of another plan is described") {
  const Folder folder;
  Plan other = folder.plan;
  const std::string identity(folder.identity.size(), '0');
  const auto reason = [&] {
    write_text(journal_path(folder.plan, identity), journal_header(other, identity));
    return find_leftovers(folder.plan).files.at(0).other_since;
  };
  CHECK(reason() == "the pipeline file, an option or a kernel module has changed");
  SourceFile changed = *folder.plan.sources[0];
  ++changed.modified;
  other.sources[0] = std::make_shared<const SourceFile>(changed);
  CHECK(reason() == "'" + changed.path + "' has changed since");
}

TEST_CASE("leftover files are removed, and nothing else") {
  const Folder folder;
  folder.leave(folder.output(0));
  folder.leave(temporary_path(folder.output(0), folder.identity));
  folder.leave_journal(journal_header(folder.plan, folder.identity), {});
  REQUIRE(discard(find_leftovers(folder.plan)));
  CHECK(names_in(folder.folder.path()) == std::vector<std::string>{"out-0.gguf"});
}

TEST_CASE("an output of a cluster job is found with the job's folder") {
  const Folder folder;
  const TempDir job;
  folder.leave_job_output(job);
  CHECK(find_leftovers(folder.plan).cluster_jobs() == std::vector<std::string>{job.path()});
}

TEST_CASE("an output of a cluster job is not removed") {
  const Folder folder;
  const TempDir job;
  folder.leave_job_output(job);
  const Status status = discard(find_leftovers(folder.plan));
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kUsage);
  CHECK(status.error().what == "the cluster job in '" + job.path().string() + "' is writing this output");
  CHECK(names_in(folder.folder.path()).size() == 2);
}

TEST_CASE("an output of a cluster job that no longer exists is removed") {
  const Folder folder;
  {
    const TempDir job;
    folder.leave_job_output(job);
  }
  REQUIRE(discard(find_leftovers(folder.plan)));
  CHECK(names_in(folder.folder.path()).empty());
}
