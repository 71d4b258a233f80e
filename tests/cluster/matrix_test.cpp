// Tests matrix jobs submitted as one array, without an engine.

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>

#include "pipeline/cluster/cut.h"
#include "pipeline/cluster/status.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/cluster/job_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace {

using Files = std::map<std::string, std::string>;

// Models with 2, 4 and 8 tensors, and a pipeline file that makes two outputs of each.
class MatrixFolder {
 public:
  MatrixFolder() {
    for (const char* name : {"a", "b", "c"}) write_model(name, 0);
  }
  void write_model(const std::string& name, float first) const {
    GgufBuilder model;
    for (int i = 0; i < 2 << (name[0] - 'a'); ++i) {
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 1200});
      std::vector<float> values(std::size_t{256} * 1200);
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = first + static_cast<float>(name[0]) + static_cast<float>(k * 7 % 255) * 0.001f;
      model.tensors.back().data = float_bytes(values);
    }
    model.write(path(name + "-F32.gguf"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  Batch batch(const std::string& folder = "out", const std::string& output = "{name}-{recipe}") const {
    auto batch =
        context().parse_batch(fmt::format("version: 1\nmatrix: {{sources: ['{}'], recipes: [Q8_0, F16]}}\n"
                                          "outputs: [{{gguf: '{}/{}.gguf', quantize: {{type: '{{recipe}}'}}}}]\n",
                                          path("*-F32.gguf"), path(folder), output),
                              path("job.yaml"));
    if (!batch) FAIL(render(batch.error()));
    return std::move(batch).value();
  }
  // Plans an array with the given number of parts; creates no files.
  PlannedArray plan(unsigned parts, const SubmitOptions& more = {}) const {
    SubmitOptions options = more;
    options.cluster.parts = parts;
    options.cluster.engine = ClusterOptions::Engine::kNone;
    auto planned = plan_matrix(context(), batch(), options);
    if (!planned) FAIL(render(planned.error()));
    return std::move(planned).value();
  }
  // Creates the array and loads it as the parts do.
  PlannedArray submit(unsigned parts, const SubmitOptions& more = {}) const {
    PlannedArray planned = plan(parts, more);
    if (const Status made = create_array(planned); !made) FAIL(render(made.error()));
    auto found = load_array(path("job.job"));
    if (!found) FAIL(render(found.error()));
    planned.array = std::move(found).value();
    return planned;
  }
  Files files(const std::string& folder = "out") const {
    Files files;
    for (const std::string& name : names_in(path(folder)))
      if (!name.starts_with(".")) files[name] = read_text(path(folder) + "/" + name);
    return files;
  }
  // Returns the files that a run of the batch writes.
  Files right() const {
    const BatchReport report = run_batch(context(), batch("right"), {});
    REQUIRE(report.count(CellState::kWritten) == 6);
    return files("right");
  }

 private:
  TempDir folder_;
};

void do_one(const PlannedArray& planned, std::size_t part) {
  const auto [job, own] = planned.array.place_of(part);
  do_part(planned.array.jobs[job], planned.plans[job], own);
}

void do_all(const PlannedArray& planned) {
  for (std::size_t part = 0; part < planned.array.parts(); ++part) do_one(planned, part);
}

std::vector<bool> seal_them(const PlannedArray& planned, double wait_seconds = 0) {
  SealOptions options;
  options.wait_seconds = wait_seconds;
  std::vector<bool> good;
  for (const auto& outcome : seal_all(context(), planned, options)) good.push_back(outcome.has_value());
  return good;
}

}  // namespace

TEST_CASE("the parts of a matrix, in any order, make the bytes of a run of it") {
  const unsigned parts = GENERATE(3U, 5U, 9U, 14U, 30U);
  CAPTURE(parts);
  const MatrixFolder folder;
  const PlannedArray planned = folder.submit(parts);
  const ClusterArray& array = planned.array;
  REQUIRE(array.jobs.size() == 3);
  CHECK(array.parts() == std::min(parts, 14U));  // at most one part per unit
  CHECK(array.skipped.empty());
  std::size_t part = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(array.jobs[i].folder == folder.path(fmt::format("job.job/{}-{}-F32", i, "abc"[i])));
    CHECK(array.jobs[i].source == folder.path(fmt::format("{}-F32.gguf", "abc"[i])));
    for (std::size_t own = 0; own < array.jobs[i].parts(); ++own, ++part) {
      CHECK(array.place_of(part).job == i);
      CHECK(array.place_of(part).part == own);
    }
  }
  for (std::size_t k = part; k-- > 0;) {
    CHECK(folder.files().empty());
    do_one(planned, k);
  }
  CHECK(seal_them(planned) == std::vector<bool>(3, true));
  CHECK((folder.files() == folder.right()));
  JobWatch watch(planned);
  CHECK(watch.look(true).state == JobStatus::State::kSealed);
  REQUIRE(remove_array(array));
  CHECK_FALSE(fs::exists(array.folder));
}

TEST_CASE("each source of a matrix gets parts by what it costs") {
  const MatrixFolder folder;
  const auto parts_of = [&](unsigned parts) {
    std::vector<std::size_t> counts;
    for (const ClusterJob& job : folder.plan(parts).array.jobs) counts.push_back(job.parts());
    return counts;
  };
  CHECK(parts_of(0) == std::vector<std::size_t>{1, 1, 1});
  CHECK(parts_of(7) == std::vector<std::size_t>{1, 2, 4});
  CHECK(parts_of(14) == std::vector<std::size_t>{2, 4, 8});
  SubmitOptions options;
  options.cluster.parts = 2;
  const auto planned = plan_matrix(context(), folder.batch(), options);
  REQUIRE(!planned);
  CHECK(planned.error().code == ExitCode::kUsage);
  CHECK(planned.error().what == "each of the 3 sources needs a part of its own, but there are only 2");
}

TEST_CASE("a source of a matrix that fails does not stop the seal of the others") {
  const MatrixFolder folder;
  const PlannedArray planned = folder.submit(7);
  do_one(planned, 0);
  do_one(planned, 1);
  fs::rename(folder.path("b-F32.gguf"), folder.path("hidden"));
  PartOptions second;
  second.part = 1;
  REQUIRE(!run_part(context(), planned.array.jobs[1], planned.plans[1], second));
  for (std::size_t part = 3; part < 7; ++part) do_one(planned, part);
  SealOptions options;
  options.wait_seconds = 60;  // a failed part is not waited for
  const auto outcomes = seal_all(context(), planned, options);
  REQUIRE(outcomes.size() == 3);
  CHECK(outcomes[0]);
  CHECK(outcomes[2]);
  REQUIRE(!outcomes[1]);
  CHECK(outcomes[1].error().code == ExitCode::kBadInput);
  CHECK(outcomes[1].error().where == folder.path("b-F32.gguf"));
  CHECK(outcomes[1].error().what == "part 2 failed");
  CHECK(outcomes[1].error().detail.find("cannot open the file") != std::string::npos);
  CHECK(folder.files().size() == 12);  // with manifests and checksums
  JobWatch watch(planned);
  const JobStatus status = watch.look(true);
  CHECK(status.state == JobStatus::State::kNeedsResume);
  CHECK(status.sealed == std::vector<bool>{true, false, true});
  CHECK(status.parts[2].state == PartStatus::State::kFailed);
  CHECK(status.count(PartStatus::State::kDone) == 6);
  // Finished parts and sealed jobs are left unchanged.
  fs::rename(folder.path("hidden"), folder.path("b-F32.gguf"));
  const auto missing = prepare_resume(planned);
  REQUIRE(missing);
  CHECK(missing.value() == std::vector<std::size_t>{2});
  CHECK(watch.look(false).parts[2].state == PartStatus::State::kMissing);
  do_one(planned, 2);
  CHECK(seal_them(planned) == std::vector<bool>(3, true));
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("the seal of a matrix waits for what is not done, and seals meanwhile what is") {
  const MatrixFolder folder;
  const PlannedArray planned = folder.submit(3);
  do_one(planned, 1);
  do_one(planned, 2);
  CHECK(seal_them(planned) == std::vector<bool>{false, true, true});
  std::future<void> later = std::async(std::launch::async, [&] { do_one(planned, 0); });
  const std::vector<bool> sealed = seal_them(planned, 60);
  later.get();
  CHECK(sealed == std::vector<bool>(3, true));
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("a matrix omits cells that are unchanged, cannot be read, or would be written twice") {
  const MatrixFolder folder;
  REQUIRE(run_batch(context(), folder.batch(), {}).count(CellState::kWritten) == 6);
  folder.write_model("b", 1);
  write_text(folder.path("c-F32.gguf"), "no model");
  SubmitOptions overwrite;
  overwrite.overwrite = true;
  const PlannedArray planned = folder.submit(0, overwrite);
  REQUIRE(planned.array.jobs.size() == 1);
  CHECK(planned.array.jobs[0].folder.ends_with("1-b-F32"));
  const std::vector<BatchCell>& skipped = planned.array.skipped;  // as written and read back
  REQUIRE(skipped.size() == 4);
  CHECK(skipped[0].state == CellState::kUnchanged);
  CHECK(skipped[1].output == folder.path("out/a-F16.gguf"));
  CHECK(skipped[1].bytes == fs::file_size(folder.path("out/a-F16.gguf")));
  CHECK(skipped[3].state == CellState::kFailed);
  CHECK(skipped[3].error->code == ExitCode::kBadInput);
  CHECK(skipped[3].error->what.starts_with("not a GGUF file"));
  do_all(planned);
  CHECK(seal_them(planned) == std::vector<bool>{true});
  // Every output that can be made already exists.
  CHECK(folder.plan(0).array.jobs.empty());
  const auto clash = plan_matrix(context(), folder.batch("other", "{recipe}"), {});
  REQUIRE(clash);
  CHECK(clash.value().array.jobs.size() == 1);
  CHECK(clash.value().array.skipped[0].error->where == folder.path("other/Q8_0.gguf"));
  CHECK(clash.value().array.skipped[0].error->what == "another source of the matrix also writes this file");
}

TEST_CASE("a matrix omits jobs that cannot be made, and without any job there is no matrix") {
  const MatrixFolder folder;
  PlannedArray planned = folder.plan(0);
  // Meanwhile, another process creates a job in the folder of one of them.
  const auto occupy = [&](std::size_t i) { REQUIRE(create_job(planned.array.jobs[i], planned.plans[i])); };
  occupy(1);
  PlannedArray others = folder.plan(0);
  REQUIRE(create_array(others));
  REQUIRE(others.array.jobs.size() == 2);
  CHECK(others.array.jobs[1].first_part == 1);
  CHECK(others.array.skipped.size() == 2);
  CHECK(others.array.skipped[0].error->what.starts_with("the cluster job in "));
  CHECK(create_array(planned).error().code == ExitCode::kUsage);  // a matrix already exists
  // Jobs of a matrix can be loaded only through the folder of the matrix.
  const auto inside = load_array(others.array.jobs[0].folder);
  REQUIRE(!inside);
  CHECK(inside.error().code == ExitCode::kUsage);
  CHECK(inside.error().help.ends_with(others.array.folder));
  REQUIRE(remove_array(others.array));
  occupy(0);
  occupy(2);
  PlannedArray none = folder.plan(0);
  REQUIRE(create_array(none));
  CHECK(none.array.jobs.empty());
  CHECK_FALSE(is_array_folder(none.array.folder));
}
