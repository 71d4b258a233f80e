#include "pipeline/cluster/cluster_job.h"

#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/cluster/test_job.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// A job of two parts with one unit each.
struct Folder {
  TempDir folder;
  Plan plan = plan_of_units(2, folder.path());
  ClusterJob job = job_of(plan, folder.path());

  // Replaces the first `what` in job.json and returns the error.
  Error refusal(const std::string& what, const std::string& by) const {
    REQUIRE(write_job(job, plan));
    std::string text = read_text(job.file("job.json"));
    const std::size_t at = text.find(what);
    REQUIRE(at != text.npos);
    write_text(job.file("job.json"), text.replace(at, what.size(), by));
    const auto loaded = load_job_folder(folder.path());
    if (loaded) FAIL("it is loaded");
    return loaded.error();
  }
  // The same job, submitted again.
  ClusterJob other() const {
    ClusterJob other = job;
    other.id = "other1";
    return other;
  }
};

DoneMarker marker() {
  DoneMarker marker;
  marker.units = {{1, {0xab}}};
  marker.host = "node";
  marker.isa = "x86-64-v3";
  marker.seconds = 1.5;
  marker.bytes_read = 10;
  marker.bytes_written = 20;
  marker.units_kept = 1;
  marker.inodes = {7};
  return marker;
}

}  // namespace

TEST_CASE("a job is loaded as it was written") {
  Folder folder;
  folder.job.overwrite = true;
  folder.job.limits.memory = 1 << 30;
  folder.job.limits.threads = 3;
  folder.job.kernel_directories = {"/kernels"};
  folder.job.isa = "x86-64-v2";
  folder.job.options.engine = ClusterOptions::Engine::kNone;
  folder.job.options.cpus = 8;
  folder.job.options.options = {"--nice=100"};
  REQUIRE(write_job(folder.job, folder.plan));
  const ClusterJob job = load_job_folder(folder.folder.path()).value();
  CHECK(job.folder == fs::canonical(folder.folder.path()));
  CHECK(job.key() == folder.job.key());
  CHECK(job.name == "Llama 3_8B");
  CHECK(job.working_folder == "/shared/work here");
  CHECK(job.overwrite);
  CHECK(job.cuts == folder.job.cuts);
  CHECK(job.costs == folder.job.costs);
  CHECK(job.limits.memory == std::uint64_t{1} << 30);
  CHECK(job.limits.threads == 3);
  CHECK(job.kernel_directories == folder.job.kernel_directories);
  CHECK(job.isa == "x86-64-v2");
  CHECK(job.options.engine == ClusterOptions::Engine::kNone);
  CHECK(job.options.cpus == 8);
  CHECK(job.options.options == folder.job.options.options);
}

TEST_CASE("a folder without a job is refused") {
  const TempDir folder;
  CHECK_FALSE(is_job_folder(folder.path()));
  const auto job = load_job_folder(folder.path());
  REQUIRE_FALSE(job);
  CHECK(job.error().code == ExitCode::kUsage);
  CHECK(job.error().help == "`ggufmill submit JOB.yaml` creates one");
}

TEST_CASE("a job of another version of ggufmill is refused") {
  const Error error = Folder().refusal("\"ggufmill\":\"" GGUFMILL_VERSION, "\"ggufmill\":\"0.0.1");
  CHECK(error.code == ExitCode::kBadInput);
  CHECK(error.what == "the job was created by ggufmill '0.0.1', but this is " GGUFMILL_VERSION);
}

TEST_CASE("a job of another format is refused") {
  CHECK(Folder().refusal("ggufmill cluster job", "another").what == "not a cluster job of this version");
}

TEST_CASE("the parts of a job are consecutive") {
  const std::string wrong = "not a valid job: its parts are not valid";
  CHECK(Folder().refusal("\"cuts\":[0,1,2]", "\"cuts\":[0,2,1]").what == wrong);
  CHECK(Folder().refusal("\"cuts\":[0,1,2]", "\"cuts\":[1,1,2]").what == wrong);
  CHECK(Folder().refusal("\"cuts\":[0,1,2]", "\"cuts\":[0]").what == wrong);
  CHECK(Folder().refusal("\"cuts\":[0,1,2]", "\"cuts\":[0,-1,2]").what ==
        "not a valid job: an element of 'cuts' is negative");
}

TEST_CASE("the costs of a job are numbers") {
  CHECK(Folder().refusal("\"costs\":[1E0", "\"costs\":[-1").what == "not a valid job: 'costs' is not a number from 0");
}

TEST_CASE("the plan of a job has the job's limits") {
  Folder folder;
  folder.job.limits.threads = 5;
  REQUIRE(write_job(folder.job, folder.plan));
  CHECK(load_plan(folder.job, {}).value().limits.threads == 5);
}

TEST_CASE("the plan of another job is refused") {
  Folder folder;
  REQUIRE(write_job(folder.job, plan_of_units(3, folder.folder.path())));
  const auto plan = load_plan(folder.job, {});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == ExitCode::kBadInput);
  CHECK(plan.error().what == "the plan does not belong to job.json");
}

TEST_CASE("the marker of a part is read as it was written") {
  const Folder folder;
  REQUIRE(write_done(folder.job, 1, marker()));
  const auto read = read_done(folder.job, 1);
  REQUIRE(read);
  REQUIRE(read->units.size() == 1);
  CHECK(read->units[0].unit == 1);
  CHECK(read->units[0].checksums == std::vector<std::uint64_t>{0xab});
  CHECK(read->host == "node");
  CHECK(read->isa == "x86-64-v3");
  CHECK(read->seconds == 1.5);
  CHECK(read->bytes_read == 10);
  CHECK(read->bytes_written == 20);
  CHECK(read->units_kept == 1);
  CHECK(read->inodes == std::vector<std::uint64_t>{7});
}

TEST_CASE("a part without a marker is not done") { CHECK_FALSE(read_done(Folder().job, 0)); }

TEST_CASE("the marker of another job of the same plan does not count") {
  const Folder folder;
  REQUIRE(write_done(folder.job, 1, marker()));
  CHECK_FALSE(read_done(folder.other(), 1));
}

TEST_CASE("the marker of another part does not count") {
  const Folder folder;
  REQUIRE(write_done(folder.job, 1, marker()));
  fs::rename(folder.job.part_file(1, "done.json"), folder.job.part_file(0, "done.json"));
  CHECK_FALSE(read_done(folder.job, 0));
}

TEST_CASE("a damaged marker does not count") {
  const Folder folder;
  REQUIRE(write_done(folder.job, 1, marker()));
  const std::string path = folder.job.part_file(1, "done.json"), text = read_text(path);
  for (std::size_t bytes = 0; bytes + 1 < text.size(); bytes += 7) {
    write_text(path, text.substr(0, bytes));
    CAPTURE(bytes);
    CHECK_FALSE(read_done(folder.job, 1));
  }
}

TEST_CASE("parts with markers are found by their names") {
  const Folder folder;
  REQUIRE(write_done(folder.job, 1, marker()));
  write_text(folder.job.file("parts/0.done.json.new"), "");
  write_text(folder.job.file("parts/7.done.json"), "");
  CHECK(parts_done(folder.job) == std::vector<bool>{false, true});
}

TEST_CASE("a marker that is removed is gone, and one that is missing can be removed") {
  const Folder folder;
  REQUIRE(write_done(folder.job, 1, marker()));
  CHECK(undo(folder.job, 1));
  CHECK_FALSE(read_done(folder.job, 1));
  CHECK(undo(folder.job, 1));
}

TEST_CASE("a heartbeat is read as it was written") {
  const Folder folder;
  REQUIRE(write_heartbeat(folder.job, 0,
                          {Heartbeat::State::kFailed, "attempt", "node", 3, 1, 100, 4, "a tensor has a NaN"}));
  const auto read = read_heartbeat(folder.job, 0);
  REQUIRE(read);
  CHECK(read->state == Heartbeat::State::kFailed);
  CHECK(read->attempt == "attempt");
  CHECK(read->host == "node");
  CHECK(read->count == 3);
  CHECK(read->units == 1);
  CHECK(read->bytes_written == 100);
  CHECK(read->exit_code == 4);
  CHECK(read->error == "a tensor has a NaN");
}

TEST_CASE("a heartbeat of another job does not count") {
  const Folder folder;
  REQUIRE(write_heartbeat(folder.job, 0, {}));
  CHECK_FALSE(read_heartbeat(folder.other(), 0));
}

TEST_CASE("a heartbeat that is removed is gone") {
  const Folder folder;
  REQUIRE(write_heartbeat(folder.job, 0, {}));
  remove_heartbeat(folder.job, 0);
  CHECK_FALSE(read_heartbeat(folder.job, 0));
}

TEST_CASE("the marker of the seal is read as it was written") {
  const Folder folder;
  REQUIRE(write_seal(folder.job, {{{1, 2}, {3, 4}}, true}));
  const auto read = read_seal(folder.job);
  REQUIRE(read);
  CHECK(read->ids == std::vector<FileId>{{1, 2}, {3, 4}});
  CHECK(read->is_finished);
  CHECK_FALSE(read_seal(folder.other()));
}

TEST_CASE("an output has its name once the sealed file is there, with its size") {
  const Folder folder;
  const std::string path = folder.plan.outputs[0].files[0].path;
  CHECK(files_named(folder.plan, {{{1, 2}}, false}) == std::vector<bool>{false});
  write_text(path, std::string(folder.plan.outputs[0].files[0].bytes, 'x'));
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK(files_named(folder.plan, {{{0, info.st_ino}}, false}) == std::vector<bool>{true});
  CHECK(files_named(folder.plan, {{{0, info.st_ino + 1}}, false}) == std::vector<bool>{false});
  write_text(path, "short");
  CHECK(files_named(folder.plan, {{{0, info.st_ino}}, false}) == std::vector<bool>{false});
}

TEST_CASE("exit codes of files are those of ggufmill, or internal errors") {
  CHECK(exit_code_of(4) == ExitCode::kBadInput);
  CHECK(exit_code_of(75) == ExitCode::kTransient);
  for (const std::uint64_t number : {0, 7, 74, 130, 1000}) CHECK(exit_code_of(number) == ExitCode::kInternal);
}

TEST_CASE("the files of a part are in the job's folder") {
  CHECK(job_in("/jobs/a").part_file(3, "edges") == "/jobs/a/parts/3.edges");
}

TEST_CASE("a job whose folder, record, or plan others may write to is refused") {
  const Folder folder;
  REQUIRE(write_job(folder.job, folder.plan));
  write_text(folder.job.file("seal.json"), "{}");
  for (const char* made : {"log", "uploads"}) fs::create_directory(folder.job.file(made));
  const std::string name = GENERATE(".", "job.json", "plan.json", "parts", "seal.json", "log", "uploads");
  CAPTURE(name);
  REQUIRE(::chmod(folder.job.file(name).c_str(), 0777) == 0);
  const auto loaded = load_job_folder(folder.folder.path());
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == ExitCode::kUsage);
  CHECK(loaded.error().what.find("is not trusted: everyone may write to it") != std::string::npos);
  CHECK(loaded.error().help.find("chmod -R go-w") != std::string::npos);
}

TEST_CASE("a job of another user is refused") {
  if (::geteuid() != 0) GGUFMILL_SKIP("only root can give a file away");
  const Folder folder;
  REQUIRE(write_job(folder.job, folder.plan));
  REQUIRE(::chown(folder.job.file("job.json").c_str(), 65534, static_cast<gid_t>(-1)) == 0);
  const auto loaded = load_job_folder(folder.folder.path());
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().what.find("it belongs to user 65534") != std::string::npos);
}

TEST_CASE("the record of a job is written so that nobody else may write to it") {
  const Folder folder;
  const mode_t before = ::umask(0);
  const Status written = write_job(folder.job, folder.plan);
  ::umask(before);
  REQUIRE(written);
  struct stat info {};
  REQUIRE(::stat(folder.job.file("job.json").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0644);
}

TEST_CASE("options of a job's record that choose what runs are refused") {
  const std::string option =
      GENERATE("--wrap=touch x", "--wra=touch x", "--chdir=/", "--export=ALL", "--uid=root", "--gid=0",
               "--get-user-env", "--export-file=x", "--bbf=x", "-D/", "script.sh", "");
  CAPTURE(option);
  const Error error = Folder().refusal("\"options\":[]", "\"options\":[\"" + option + "\"]");
  CHECK(error.code == ExitCode::kBadInput);
  CHECK(error.what.starts_with("not a valid job: 'options' is "));
}

TEST_CASE("settings of a job's record are those that a pipeline file may have") {
  CHECK(Folder().refusal("\"partition\":\"\"", "\"partition\":\"a\\nb\"").what.find("'partition' is") !=
        std::string::npos);
  CHECK(Folder().refusal("\"time\":\"\"", "\"time\":\"long\"").what.find("'time' is") != std::string::npos);
}

TEST_CASE("the names of a job's record lead to no other folder") {
  CHECK(Folder().refusal("\"id\":\"abc123\"", "\"id\":\"../x\"").what.find("'id' is '../x'") != std::string::npos);
}
