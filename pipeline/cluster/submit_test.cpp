#include "pipeline/cluster/submit.h"

#include <sys/stat.h>

#include "pipeline/cluster/part_store.h"
#include "pipeline/cluster/test_job.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace {

// A plan of `job.yaml` in a folder.
Plan plan_in(const TempDir& folder, std::size_t units = 4) {
  Plan plan = plan_of_units(units, folder.path());
  plan.file = folder.file("job.yaml");
  return plan;
}

std::string refusal(const Plan& plan, const SubmitOptions& options = {}) {
  const auto job = make_job(plan, options);
  if (job) FAIL("a job is made");
  CHECK(job.error().code == ExitCode::kUsage);
  return job.error().what;
}

}  // namespace

TEST_CASE("the job of a plan has its parts, in a folder next to the pipeline file") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  SubmitOptions options;
  options.cluster.parts = 2;
  options.overwrite = true;
  options.kernels.isa = "x86-64-v3";
  const ClusterJob job = make_job(plan, options).value();
  CHECK(job.folder == folder.file("job.job"));
  CHECK(job.name == "job");
  CHECK(job.identity == identity_of(plan));
  CHECK(job.cuts == std::vector<std::size_t>{0, 2, 4});
  CHECK(job.costs.size() == 2);
  CHECK(job.overwrite);
  CHECK(job.isa == "x86-64-v3");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("two jobs of the same plan have different keys") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  CHECK(make_job(plan, {}).value().key() != make_job(plan, {}).value().key());
}

TEST_CASE("a job has the folder that is asked for") {
  const TempDir folder;
  SubmitOptions options;
  options.cluster.folder = folder.file("a/../b/");
  CHECK(make_job(plan_in(folder), options).value().folder == folder.file("b"));
}

TEST_CASE("direct I/O is refused for parts") {
  const TempDir folder;
  Plan plan = plan_in(folder);
  plan.limits.io = IoMode::kDirect;
  CHECK(refusal(plan) == "limits.io: direct is not supported for parts, whose files others write at the same time");
}

TEST_CASE("a profile is refused for parts") {
  const TempDir folder;
  Plan plan = plan_in(folder);
  plan.trace = "trace.json";
  CHECK(refusal(plan) == "--profile is for a single run, not for parts");
}

TEST_CASE("a limit above a part's memory is refused") {
  const TempDir folder;
  Plan plan = plan_in(folder);
  plan.limits.memory = std::uint64_t{2} << 30;
  SubmitOptions options;
  options.cluster.memory = std::uint64_t{1} << 30;
  CHECK(refusal(plan, options) == "limits.memory is 2.00 GiB, but a part has 1.00 GiB (cluster.memory)");
}

TEST_CASE("a row that does not fit into a part's memory is refused") {
  const TempDir folder;
  Plan plan = plan_in(folder);
  plan.least_memory = 64 << 20;
  SubmitOptions options;
  options.cluster.memory = 64 << 20;
  CHECK(refusal(plan, options) ==
        "the longest rows that are encoded together need 64.00 MiB, but a part has 64.00 MiB (cluster.memory)");
}

TEST_CASE("a job is created with its outputs, and removed without them") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  const ClusterJob job = make_job(plan, {}).value();
  CHECK(check_folder_is_free(plan.file, {}));
  REQUIRE(create_job(job, plan));
  CHECK(names_in(job.folder) == std::vector<std::string>{"job.json", "parts", "plan.json"});
  CHECK(names_in(folder.path()) == std::vector<std::string>{".out-0.gguf.ggufmill-" + job.key(),
                                                            ".out-0.gguf.ggufmill-" + job.key() + ".job", "job.job"});
  REQUIRE(remove_job(job));
  CHECK_FALSE(fs::exists(job.folder));
  REQUIRE(remove_outputs(job, plan));
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("nobody else may write to the folder of a job or to what is in it, whatever the umask") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  const ClusterJob job = make_job(plan, {}).value();
  const mode_t before = ::umask(0);
  const Status created = create_job(job, plan);
  ::umask(before);
  REQUIRE(created);
  for (const char* name : {".", "parts", "job.json", "plan.json"}) {
    CAPTURE(name);
    struct stat info {};
    REQUIRE(::stat(job.file(name).c_str(), &info) == 0);
    CHECK((info.st_mode & 0022) == 0);
  }
}

TEST_CASE("a job is not created in a folder in which others may replace it") {
  const TempDir folder;
  const std::string open = folder.file("open");
  fs::create_directory(open);
  REQUIRE(::chmod(open.c_str(), 0777) == 0);
  SubmitOptions options;
  options.cluster.folder = open + "/job";
  PlannedArray planned;
  planned.plans.push_back(plan_in(folder));
  planned.array = array_of(make_job(planned.plans.front(), options).value());
  const Status created = create_array(planned);
  REQUIRE_FALSE(created);
  CHECK(created.error().code == ExitCode::kUsage);
  CHECK(created.error().what.find("everyone may write to it") != std::string::npos);
  CHECK_FALSE(fs::exists(open + "/job"));
}

TEST_CASE("a folder that contains a job is not free") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  const ClusterJob job = make_job(plan, {}).value();
  REQUIRE(create_job(job, plan));
  const Status status = check_folder_is_free(plan.file, {});
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kUsage);
  CHECK(status.error().what == "there is already a job in '" + job.folder + "'");
  CHECK(create_job(job, plan).error().what == status.error().what);
}

TEST_CASE("a job's folder with other files is kept without the job") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  const ClusterJob job = make_job(plan, {}).value();
  REQUIRE(create_job(job, plan));
  write_text(job.file("notes.txt"), "mine");
  REQUIRE(remove_job(job));
  CHECK(names_in(job.folder) == std::vector<std::string>{"notes.txt"});
}

TEST_CASE("all parts of a job that was not started are to be done") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  SubmitOptions options;
  options.cluster.parts = 2;
  const ClusterJob job = make_job(plan, options).value();
  REQUIRE(create_job(job, plan));
  CHECK(prepare_resume(job, plan).value() == std::vector<std::size_t>{0, 1});
}

TEST_CASE("outputs that were removed are created again when a job is resumed") {
  const TempDir folder;
  const Plan plan = plan_in(folder);
  const ClusterJob job = make_job(plan, {}).value();
  REQUIRE(create_job(job, plan));
  REQUIRE(remove_outputs(job, plan));
  REQUIRE(prepare_resume(job, plan));
  CHECK(fs::file_size(folder.file(".out-0.gguf.ggufmill-" + job.key())) == plan.outputs[0].files[0].bytes);
}

TEST_CASE("indices are written as Slurm reads them") {
  CHECK(index_list({0, 1, 2, 3}) == "0-3");
  CHECK(index_list({0, 2, 3, 9}) == "0,2-3,9");
  CHECK(index_list({}).empty());
}
