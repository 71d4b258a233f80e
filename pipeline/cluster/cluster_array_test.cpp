#include "pipeline/cluster/cluster_array.h"

#include "pipeline/cluster/test_job.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// A matrix of two jobs with two parts each, written to a folder.
struct Matrix {
  TempDir folder;
  ClusterArray array;

  Matrix() {
    array.folder = folder.path();
    array.is_matrix = true;
    for (const char* name : {"0-a", "1-b"}) {
      const Plan plan = plan_of_units(2, folder.path());
      ClusterJob job = job_of(plan, folder.file(name));
      job.source = std::string(name) + ".gguf";
      job.first_part = array.jobs.empty() ? 0 : array.parts();
      REQUIRE(write_job(job, plan));
      array.jobs.push_back(job);
    }
    array.skipped.push_back({.source = "c.gguf", .output = "c-Q4_0.gguf", .state = CellState::kUnchanged, .bytes = 5});
    array.report = {true, "report.json", ""};
    REQUIRE(write_matrix(array));
  }
  std::string refusal(const std::string& what, const std::string& by) const {
    std::string text = read_text(array.plan_file());
    const std::size_t at = text.find(what);
    REQUIRE(at != text.npos);
    write_text(array.plan_file(), text.replace(at, what.size(), by));
    const auto loaded = load_array(folder.path());
    if (loaded) FAIL("it is loaded");
    CHECK(loaded.error().code == ExitCode::kBadInput);
    return loaded.error().what;
  }
};

}  // namespace

TEST_CASE("a single job is an array in the job's folder") {
  const ClusterArray array = array_of(job_in("/jobs/a"));
  CHECK(array.folder == "/jobs/a");
  CHECK(array.plan_file() == "/jobs/a/plan.json");
  CHECK(array.parts() == 4);
}

TEST_CASE("parts of a matrix are numbered across its jobs") {
  const Matrix matrix;
  CHECK(matrix.array.parts() == 4);
  const auto [job, part] = matrix.array.place_of(2);
  CHECK(job == 1);
  CHECK(part == 0);
  CHECK(matrix.array.place_of(1).job == 0);
  CHECK(matrix.array.place_of(3).part == 1);
}

TEST_CASE("a matrix is loaded as it was written") {
  const Matrix matrix;
  const ClusterArray array = load_array(matrix.folder.path()).value();
  CHECK(array.is_matrix);
  REQUIRE(array.jobs.size() == 2);
  CHECK(array.jobs[1].source == "1-b.gguf");
  CHECK(array.jobs[1].first_part == 2);
  CHECK(array.jobs[1].array_folder == array.folder);
  REQUIRE(array.skipped.size() == 1);
  CHECK(array.skipped[0].output == "c-Q4_0.gguf");
  CHECK(array.skipped[0].state == CellState::kUnchanged);
  CHECK(array.skipped[0].bytes == 5);
  CHECK(array.report.json == "report.json");
}

TEST_CASE("a single job is loaded as an array") {
  const TempDir folder;
  const Plan plan = plan_of_units(2, folder.path());
  REQUIRE(write_job(job_of(plan, folder.path()), plan));
  const ClusterArray array = load_array(folder.path()).value();
  CHECK_FALSE(array.is_matrix);
  CHECK(array.parts() == 2);
}

TEST_CASE("a job of a matrix is not loaded without it") {
  const Matrix matrix;
  const auto array = load_array(matrix.folder.file("0-a"));
  REQUIRE_FALSE(array);
  CHECK(array.error().code == ExitCode::kUsage);
  CHECK(array.error().what == "'" + matrix.folder.file("0-a") + "' is one of the jobs of a matrix");
}

TEST_CASE("a folder without a job is not an array") {
  const TempDir folder;
  CHECK_FALSE(is_array_folder(folder.path()));
  CHECK(load_array(folder.path()).error().code == ExitCode::kUsage);
}

TEST_CASE("the jobs of a matrix are in its folder") {
  for (const char* name : {"..", "/etc", "a/../b", ""}) {
    CAPTURE(name);
    const std::string wrong = "not a valid matrix: '" + std::string(name) + "' is not a valid name of a job folder";
    CHECK(Matrix().refusal("0-a", name) == wrong);
  }
}

TEST_CASE("a matrix whose job was removed is refused") {
  const Matrix matrix;
  fs::remove_all(matrix.folder.file("1-b"));
  const auto array = load_array(matrix.folder.path());
  REQUIRE_FALSE(array);
  CHECK(array.error().what == "not a valid matrix: there is no job in '1-b'");
}

TEST_CASE("a matrix of another version is refused") {
  CHECK(Matrix().refusal("\"version\":1", "\"version\":2") == "not a matrix of cluster jobs of this version");
}
