// Checks the requests sent to Slurm, without Slurm: sbatch is a script that records its arguments.

#include "pipeline/cluster/slurm.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "pipeline/cluster/test_job.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// Programs with the names of Slurm's, in front of PATH.
class FakeSlurm {
 public:
  // `sbatch` is the action of that script after it has recorded its arguments.
  explicit FakeSlurm(const std::string& sbatch) : path_(std::getenv("PATH")) {
    program("sbatch", sbatch);
    program("scancel", "");
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~FakeSlurm() { ::setenv("PATH", path_.c_str(), 1); }
  FakeSlurm(const FakeSlurm&) = delete;
  FakeSlurm& operator=(const FakeSlurm&) = delete;
  std::string noted_path() const { return folder_.file("noted"); }
  std::string noted() const { return read_text(noted_path()); }

 private:
  void program(const std::string& name, const std::string& body) const {
    write_text(folder_.file(name),
               fmt::format("#!/bin/sh\necho {} \"$@\" >> {}\n{}\n", name, folder_.file("noted"), body));
    ::chmod(folder_.file(name).c_str(), 0755);
  }

  TempDir folder_;
  const std::string path_;
};

}  // namespace

TEST_CASE("parts are an array of Slurm, and the seal depends on it") {
  const TempDir folder;
  ClusterArray array = array_of(job_in(folder.path()));
  ClusterJob& job = array.jobs.front();
  job.options.partition = "long; rm";
  job.options.cpus = 8;
  job.options.memory = std::uint64_t{4} << 30;
  job.options.time = "2:00:00";
  job.options.max_parallel = 2;
  job.options.options = {"--nice=100"};
  const FakeSlurm slurm("echo $((41 + $(wc -l < \"$(dirname \"$0\")/noted\")))';cluster'");
  const auto submitted = submit_to_slurm(array, {0, 1, 3}, "/opt/gguf mill/bin/ggufmill");
  REQUIRE(submitted);
  CHECK(submitted.value().parts_id == "42");
  CHECK(submitted.value().seal_id == "43");
  const std::string noted = slurm.noted();
  for (const char* word :
       {"--array=0-1,3%2", "--partition=long; rm", "--cpus-per-task=8", "--mem=4096M", "--time=2:00:00", "--nice=100",
        "--signal=B:USR1@60", "--requeue", "--chdir=/shared/work here", "--dependency=afterok:42",
        "--kill-on-invalid-dep=yes", "--export=HOME,PATH,LD_LIBRARY_PATH"}) {
    CAPTURE(word);
    CHECK(noted.find(word) != std::string::npos);
  }
  CHECK(read_text(job.file("part.sh")).find("'/opt/gguf mill/bin/ggufmill' part --quiet") != std::string::npos);
  const auto again = submit_to_slurm(array, {}, "ggufmill");  // only the seal
  REQUIRE(again);
  CHECK(again.value().parts_id.empty());
  const auto submissions = read_submissions(array);
  REQUIRE(submissions);
  REQUIRE(submissions.value().size() == 2);
  CHECK(submissions.value()[0].indices == "0-1,3");
  CHECK(submissions.value()[1].seal_id == "44");
}

TEST_CASE("the parts of a matrix are one array, and the seal waits for their end") {
  const TempDir folder;
  ClusterArray array = array_of(job_in(folder.file("0-a")));
  array.folder = folder.path();
  array.is_matrix = true;
  array.jobs.push_back(job_in(folder.file("1-b")));
  array.jobs.back().first_part = array.jobs.front().parts();
  const FakeSlurm slurm("echo $((41 + $(wc -l < \"$(dirname \"$0\")/noted\")))");
  REQUIRE(submit_to_slurm(array, {0, 1, 2, 3, 4, 5, 6, 7}, "ggufmill"));
  const std::string noted = slurm.noted();
  CHECK(noted.find("--array=0-7 ") != std::string::npos);
  CHECK(noted.find("--dependency=afterany:42 ") != std::string::npos);
  CHECK(noted.find("--kill-on-invalid-dep") == std::string::npos);
  CHECK(std::ranges::count(noted, '\n') == 2);  // nothing else is submitted
  for (const char* script : {"part.sh", "seal.sh"})
    CHECK(read_text(array.file(script)).find("--plan " + array.file("matrix.json") + " ") != std::string::npos);
}

TEST_CASE("where Slurm takes the parts and not the seal, the parts are taken back") {
  const TempDir folder;
  const ClusterArray array = array_of(job_in(folder.path()));
  const FakeSlurm slurm("case \"$*\" in *afterok*) echo 'no such partition' >&2; exit 1;; *) echo 7;; esac");
  const auto submitted = submit_to_slurm(array, {0}, "ggufmill");
  REQUIRE(!submitted);
  CHECK(submitted.error().code == ExitCode::kIo);
  CHECK(submitted.error().detail == "no such partition\n");
  CHECK(slurm.noted().ends_with("scancel 7\n"));
}

TEST_CASE("an array that was not submitted has no submissions") {
  const TempDir folder;
  CHECK(read_submissions(array_of(job_in(folder.path()))).value().empty());
}

TEST_CASE("a damaged record of submissions is an error") {
  const TempDir folder;
  write_text(folder.file("engine.json"), "{}");
  const auto read = read_submissions(array_of(job_in(folder.path())));
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ExitCode::kBadInput);
}

TEST_CASE("a task is active while it runs, or waits for something that will happen") {
  CHECK(SlurmTask{"RUNNING", "None"}.is_active());
  CHECK(SlurmTask{"PENDING", "Resources"}.is_active());
  CHECK_FALSE(SlurmTask{"PENDING", "DependencyNeverSatisfied"}.is_active());
  CHECK_FALSE(SlurmTask{"FAILED", "NonZeroExitCode"}.is_active());
}

TEST_CASE("the numbers of submitted jobs are digits") {
  const TempDir folder;
  const std::string record = GENERATE(
      R"({"parts":"--user=root","indices":"0-1","seal":"5"})",
      R"({"parts":"4","indices":"0-1","seal":"--state=RUNNING"})", R"({"parts":"4,5","indices":"0-1","seal":"5"})",
      R"({"parts":"4 ","indices":"0-1","seal":"5"})", R"({"parts":"4","indices":"0-1 --x","seal":"5"})",
      R"({"parts":"0","indices":"0-1","seal":"5"})", R"({"parts":"04","indices":"0-1","seal":"5"})",
      R"({"parts":"4294967296","indices":"0-1","seal":"5"})", R"({"parts":"","indices":"","seal":""})");
  CAPTURE(record);
  write_text(folder.file("engine.json"), R"({"engine":"slurm","submissions":[)" + record + "]}");
  const FakeSlurm slurm("");
  const ClusterArray array = array_of(job_in(folder.path()));
  CHECK(read_submissions(array).error().code == ExitCode::kBadInput);
  CHECK(cancel_in_slurm(array).error().code == ExitCode::kBadInput);
  CHECK_FALSE(fs::exists(slurm.noted_path()));
}

TEST_CASE("a record of submissions that cannot be read is not one without submissions") {
  const TempDir folder;
  const std::string record = folder.file("engine.json");
  SECTION("a pipe") { REQUIRE(::mkfifo(record.c_str(), 0600) == 0); }
  SECTION("a folder") { fs::create_directory(record); }
  SECTION("a broken link") { fs::create_symlink(folder.file("missing"), record); }
  SECTION("no JSON") { write_text(record, "{"); }
  SECTION("no list") { write_text(record, "{}"); }
  const FakeSlurm slurm("");
  const auto canceled = cancel_in_slurm(array_of(job_in(folder.path())));
  REQUIRE_FALSE(canceled);
  CHECK(canceled.error().help.find("remove the file if no part of the job is queued") == 0);
  CHECK_FALSE(fs::exists(slurm.noted_path()));
}
