// Fuzzes the files that a cluster job stores in its folder for other nodes: job.json, matrix.json, the markers of parts
// and seals, and the records of submissions.

#include "pipeline/cluster/cluster_array.h"
#include "pipeline/cluster/measured.h"
#include "pipeline/cluster/slurm.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/journal/output_claim.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/files.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

// A plan of three units.
Plan small_plan() {
  return testing::plan_of({{"a", testing::shape_of({256, 40}), "F32", {"Q8_0", "F16"}, false},
                           {"b", testing::shape_of({256, 40}), "F32", {"Q8_0", "F16"}, false},
                           {"c", testing::shape_of({256, 40}), "F32", {"Q8_0", "F16"}, false}});
}

// A job of two parts.
ClusterJob small_job(const std::string& folder) {
  ClusterJob job;
  job.folder = job.array_folder = folder;
  job.working_folder = "/shared/work";
  job.name = "small";
  job.identity = "0123456789abcdef0123456789abcdef";
  job.id = "abc123";
  job.cuts = {0, 1, 3};
  job.costs = {1, 2.5};
  job.limits.threads = 3;
  job.kernel_directories = {"/shared/kernels"};
  job.options.time = "2:00:00";
  job.options.options = {"--nice=100"};
  return job;
}

// Creates a job in the folder and returns its job.json.
std::string make_small_job(const std::string& folder) {
  fs::create_directory(folder);
  const ClusterJob job = small_job(folder);
  return write_job(job, small_plan()) ? read_text(job.file("job.json")) : std::string();
}

// Returns a folder in memory if possible, because every file is flushed.
fs::path memory() { return fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path(); }

// A folder with the jobs of a matrix; it exists as long as the process.
struct Folder {
  Folder() {
    make_small_job(dir.file("0-a"));
    make_small_job(dir.file("1-b"));
    fs::create_directories(dir.path() / "job" / "parts");
  }
  TempDir dir{memory()};
};
const TempDir& folder() {
  static const Folder one;
  return one.dir;
}

std::string problem_of(const Error& error, const std::string& path) {
  const bool clear = error.code == ExitCode::kBadInput && error.where == path && !error.what.empty() &&
                     error.what.find('\n') == std::string::npos && error.what.find("boost") == std::string::npos &&
                     render(error).size() < 10000;
  return clear ? "" : "not a clear error: " + render(error);
}

// Checks that a parsed marker survives writing and reading: writing it twice must give the same text.
template <class Read, class Write>
std::string problem_of_marker(const std::string& path, std::string_view bytes, const Read& read, const Write& write) {
  write_text(path, bytes);
  const auto marker = read();
  if (!marker) return {};  // not a valid marker
  if (!write(*marker)) return "it cannot be written";
  const std::string text = read_text(path);
  const auto again = read();
  if (!again) return "what is written cannot be read: " + text;
  return write(*again) && read_text(path) == text ? "" : "a marker does not come back the same: " + text;
}

}  // namespace

std::string fuzz_cluster_job(std::string_view bytes) {
  const std::string path = folder().file("job/job.json");
  write_text(path, bytes);
  const auto job = load_job_folder(folder().file("job"));
  if (!job) return problem_of(job.error(), path);
  const ClusterJob& read = job.value();
  for (std::size_t part = 0; part < read.parts(); ++part)
    if (read.range(part).first > read.range(part).last) return "a part ends before it begins";
  const TempDir other(memory());
  const auto write = [&](ClusterJob one) {
    one.folder = other.path();
    for (const char* name : {"job.json", "plan.json"}) fs::remove(other.file(name));
    return write_job(one, small_plan()) ? read_text(other.file("job.json")) : std::string();
  };
  const std::string text = write(read);
  const auto again = load_job_folder(other.path());
  if (!again) return "what is written cannot be read: " + render(again.error());
  return write(again.value()) == text ? "" : "a job does not come back the same";
}

std::vector<std::string> cluster_job_seeds() {
  const TempDir dir;
  std::string text = make_small_job(dir.file("job"));
  return {text, text.substr(0, text.size() / 2), R"({"format":"ggufmill cluster job","version":2})", "{}", "[]", ""};
}

std::string fuzz_cluster_matrix(std::string_view bytes) {
  const std::string path = folder().file("matrix.json");
  write_text(path, bytes);
  auto array = load_array(folder().path());
  if (!array) return problem_of(array.error(), path);
  for (std::size_t part = 0; part < array.value().parts(); ++part) {
    const auto [job, own] = array.value().place_of(part);
    if (job >= array.value().jobs.size() || own >= array.value().jobs[job].parts()) return "a part is of no job";
  }
  fs::remove(path);
  if (!write_matrix(array.value())) return "it cannot be written";
  const std::string text = read_text(path);
  const auto again = load_array(folder().path());
  if (!again) return "what is written cannot be read: " + render(again.error());
  fs::remove(path);
  return write_matrix(again.value()) && read_text(path) == text ? "" : "a matrix does not come back the same";
}

std::vector<std::string> cluster_matrix_seeds() {
  const TempDir dir;
  ClusterArray array;
  array.folder = dir.path();
  array.jobs = {small_job(dir.file("0-a")), small_job(dir.file("1-b"))};
  array.jobs[0].source = "models/a.gguf";
  array.skipped.resize(2);
  array.skipped[0].state = CellState::kUnchanged;
  array.skipped[0].output = "out/c.gguf";
  array.skipped[0].bytes = array.skipped[0].weights = 4096;
  array.skipped[1].state = CellState::kFailed;
  array.skipped[1].error = input_error("models/d.gguf", "it ends early", "fetch it again");
  array.report.json = "all.json";
  if (!write_matrix(array)) return {};
  const std::string text = read_text(array.file("matrix.json"));
  const std::string head =
      R"({"format":"ggufmill cluster matrix","version":1,"skipped":[],"report":{"json":"","html":""},)";
  return {text,
          text.substr(0, text.size() / 2),
          head + R"("jobs":[]})",
          head + R"("jobs":[{"folder":"../0-a","source":""}]})",
          head + R"("jobs":[{"folder":"2-c","source":""}]})",
          "{}",
          ""};
}

std::string fuzz_cluster_marker(std::string_view bytes) {
  const ClusterJob job = small_job(folder().file("job"));
  const std::string done = problem_of_marker(
      job.part_file(1, "done.json"), bytes, [&] { return read_done(job, 1); },
      [&](const DoneMarker& marker) { return bool(write_done(job, 1, marker)); });
  if (!done.empty()) return done;
  const std::string heartbeat = problem_of_marker(
      job.part_file(1, "beat.json"), bytes, [&] { return read_heartbeat(job, 1); },
      [&](const Heartbeat& marker) { return bool(write_heartbeat(job, 1, marker)); });
  if (!heartbeat.empty()) return heartbeat;
  const std::string seal = problem_of_marker(
      job.file("seal.json"), bytes, [&] { return read_seal(job); },
      [&](const SealMarker& marker) { return bool(write_seal(job, marker)); });
  if (!seal.empty()) return seal;
  const std::string claim = problem_of_marker(
      claim_path(folder().file("model.gguf"), job.key()), bytes,
      [&] {
        auto read = read_claim(claim_path(folder().file("model.gguf"), job.key()));
        if (read) static_cast<void>(is_held(*read));
        return read && read->key == job.key() ? read : std::nullopt;
      },
      [&](const OutputClaim& one) { return bool(write_claim(folder().file("model.gguf"), one)); });
  if (!claim.empty()) return claim;
  static const Plan plan = small_plan();
  write_text(job.part_file(1, "measured.json"), bytes);
  RunReport run;
  join_measured(job, plan, run);
  if (run.steps.size() != plan.steps.size() || run.steps_kept.size() != plan.steps.size()) return "a step is lost";
  for (const StepResult& step : run.steps)
    if (step.encodings.size() != 2) return "an encoding is lost";
  write_text(job.file("engine.json"), bytes);
  const auto submissions = read_submissions(array_of(job));
  return submissions ? "" : problem_of(submissions.error(), job.file("engine.json"));
}

std::vector<std::string> cluster_marker_seeds() {
  const TempDir dir;
  fs::create_directory(dir.path() / "parts");
  const ClusterJob job = small_job(dir.path());
  DoneMarker done;
  done.units = {{1, {1, 2}}, {2, {3, ~std::uint64_t{0}}}};
  done.host = "n1";
  done.isa = "x86-64-v4";
  done.seconds = 1.25;
  done.bytes_read = done.bytes_written = 81920;
  done.inodes = {7, 8};
  done.chunks = {{0, 3, "\"0cc175b9c0f1b6a831c399e269772661\""}};
  Heartbeat heartbeat;
  heartbeat.state = Heartbeat::State::kFailed;
  heartbeat.attempt = "n1-7-abcdef";
  heartbeat.exit_code = 4;
  heartbeat.error = "error: NaN\n";
  if (!write_done(job, 1, done) || !write_heartbeat(job, 1, heartbeat) ||
      !write_seal(job, {{{1, 7}, {2, ~std::uint64_t{0}}}, true}))
    return {};
  const float reference[] = {1, 2, 3}, values[] = {1, 2.5, 3};
  DifferenceSums sums;
  sums.add_rows(reference, values, 3, nullptr);
  RunReport run;
  run.steps.resize(3);
  for (StepResult& step : run.steps) step.encodings = {{0.5, {}, std::make_shared<const DifferenceSums>(sums)}, {}};
  if (!write_measured(job, 1, small_plan(), run)) return {};
  const OutputClaim claim{job.key(), dir.path(), dir.path()};
  if (!write_claim(dir.file("model.gguf"), claim)) return {};
  return {read_text(claim_path(dir.file("model.gguf"), job.key())),
          read_text(job.part_file(1, "done.json")),
          read_text(job.part_file(1, "measured.json")),
          read_text(job.part_file(1, "beat.json")),
          read_text(job.file("seal.json")),
          R"({"engine":"slurm","submissions":[{"parts":"42","indices":"0-3","seal":"43"}]})",
          "{}",
          ""};
}

}  // namespace ggufmill
