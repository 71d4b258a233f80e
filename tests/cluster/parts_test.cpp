// Tests parts and seals without an engine; the test itself does what a cluster would do to them.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <fstream>
#include <functional>
#include <future>
#include <random>

#include "pipeline/cluster/cut.h"
#include "pipeline/cluster/done_parts.h"
#include "pipeline/cluster/edges.h"
#include "pipeline/cluster/part_store.h"
#include "pipeline/cluster/status.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/plan/slabs.h"
#include "tests/cluster/job_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace json = boost::json;

namespace {

// Counts the names in the outputs' folder that are not outputs.
std::size_t leftovers(const JobFolder& folder) {
  std::size_t count = 0;
  for (const std::string& name : names_in(folder.path("out")))
    if (name.starts_with(".")) ++count;
  return count;
}

// Changes one byte of the data written by the parts.
void corrupt(const ClusterJob& job, const Plan& plan, std::size_t file, std::uint64_t offset) {
  std::fstream stream(temporary_path(stored_files(plan)[file].path, job.key()),
                      std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(stream.get() ^ 1);
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(byte);
  REQUIRE(stream);
}

// Does the work in a process that is killed before its k-th system call. Returns false if it ran to completion.
bool killed_at(int k, const std::function<bool()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::atomic<int> calls{0};
    const HookedCalls hooked([&] { return ++calls == k ? std::raise(SIGKILL) : 0; });
    ::_exit(work() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}

}  // namespace

TEST_CASE("parts, in any order and number, make the bytes of one run") {
  const SourceKind source = GENERATE(SourceKind::kGguf, SourceKind::kCheckpoint);
  const unsigned parts = GENERATE(1U, 2U, 5U, 13U);
  CAPTURE(static_cast<int>(source), parts);
  const JobFolder folder(source, "manifest: true\n");
  const auto right = folder.right();
  REQUIRE(right.size() >= 9);
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, parts);
  const auto again = load_plan(job, context().kernels().types());
  REQUIRE(again);
  REQUIRE(job.parts() == parts);
  std::vector<std::size_t> order(parts);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(parts));
  for (const std::size_t part : order) {
    CHECK(folder.files().empty());
    CHECK_FALSE(do_part(job, again.value(), part).was_done);
    CHECK(do_part(job, again.value(), part).was_done);
  }
  CHECK_FALSE(do_seal(job, again.value()).was_sealed);
  auto made = folder.files();
  // All files must be equal, including manifests and checksum files, which do not contain the folder of the outputs.
  CHECK(made.size() == right.size());
  for (const auto& [name, text] : right) {
    CAPTURE(name);
    CHECK((made[name] == text));
  }
  CHECK(leftovers(folder) == 0);
  CHECK(do_seal(job, again.value()).was_sealed);
  CHECK(do_part(job, again.value(), 0).was_done);
}

TEST_CASE("every chunk of an output has one writer, and nothing is written twice or omitted") {
  const SourceKind source = GENERATE(SourceKind::kGguf, SourceKind::kCheckpoint);
  const JobFolder folder(source);
  const Plan plan = folder.plan();
  const std::vector<StoredFile> stored = stored_files(plan);
  for (std::size_t parts = 1; parts < 20; ++parts) {
    const std::vector<std::size_t> cuts = cut_plan(plan, unit_costs(plan), parts);
    const std::vector<PartPlaces> places = places_of(plan, cuts, 0, cuts.size() - 1);
    // For each chunk of each file, the part that writes it; for each byte in edges, the number of writes.
    std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> writers;
    std::uint64_t data = 0, in_hems = 0;
    std::vector<std::size_t> first_files;
    std::size_t files = 0;
    for (const PlannedOutput& output : plan.outputs) {
      first_files.push_back(files);
      files += output.files.size();
    }
    for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
      for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i) {
        const Step& step = plan.steps[plan.units[i].step];
        for (const Encoding& encoding : step.encodings)
          for (const Place& place : encoding.places) {
            const std::uint64_t row = row_bytes(*encoding.type, step.expression->shape);
            const std::uint64_t begin = place.offset + plan.units[i].first_row * row;
            const std::uint64_t end = begin + plan.units[i].rows * row;
            const std::size_t file = first_files[place.output] + place.file;
            data += end - begin;
            for (std::uint64_t at = begin; at < end;) {
              const auto edge = std::ranges::find_if(places[part].edges, [&](const Edge& one) {
                return one.file == file && one.offset <= at && at < one.offset + one.bytes;
              });
              if (edge != places[part].edges.end()) {
                at = edge->offset + edge->bytes;
                continue;
              }
              CHECK(at / kChunkBytes >= (stored[file].header.size() + kChunkBytes - 1) / kChunkBytes);
              CHECK(writers.emplace(std::pair(file, at / kChunkBytes), part).first->second == part);
              at = std::min(end, (at / kChunkBytes + 1) * kChunkBytes);
            }
          }
      }
      for (const Edge& edge : places[part].edges) {
        in_hems += edge.bytes;
        CHECK(writers.count({edge.file, edge.offset / kChunkBytes}) == 0);
        CHECK((edge.offset + edge.bytes - 1) / kChunkBytes == edge.offset / kChunkBytes);
      }
    }
    CHECK(in_hems < data);
  }
}

TEST_CASE("cuts are where the costs are halved, and between shards where these are near") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::vector<double> costs = unit_costs(plan);
  for (std::size_t parts = 1; parts <= plan.units.size() + 3; ++parts) {
    const std::vector<std::size_t> cuts = cut_plan(plan, costs, parts);
    CHECK(cuts.size() == std::min(parts, plan.units.size()) + 1);
    CHECK(cuts.front() == 0);
    CHECK(cuts.back() == plan.units.size());
    CHECK(std::ranges::adjacent_find(cuts, std::greater_equal<>()) == cuts.end());
  }
  // A single sharded output: each of the two parts has complete shards only.
  const auto job = context().parse_job(
      fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs:\n  - {{gguf: {{path: {}, shard_tensors: 4}}}}\n",
                  folder.path("model.gguf"), folder.path("s.gguf")),
      "job.yaml");
  const Plan sharded = context().plan(job.value()).value();
  REQUIRE(sharded.outputs[0].files.size() == 4);
  const auto places = places_of(sharded, cut_plan(sharded, unit_costs(sharded), 2), 0, 2);
  CHECK((places[0].files == std::vector<std::size_t>{0, 1}));
  CHECK((places[1].files == std::vector<std::size_t>{2, 3}));
}

TEST_CASE("what parts measure is what one run measures") {
  const JobFolder folder;
  // Returns the errors in the report, for each tensor of each output.
  const auto errors_in = [&](const std::string& name) {
    std::vector<json::value> errors;
    const json::value report = json::parse(read_text(folder.path(name)));
    for (const json::value& output : report.at("outputs").as_array())
      for (const json::value& tensor : output.at("tensors").as_array()) errors.push_back(tensor.at("error"));
    return errors;
  };
  Plan one_run = folder.plan("right");
  one_run.report = {true, folder.path("right.json"), ""};
  REQUIRE(context().run(one_run, {}));
  const std::vector<json::value> right = errors_in("right.json");
  REQUIRE(std::ranges::count(right, json::value()) != static_cast<std::ptrdiff_t>(right.size()));
  Plan plan = folder.plan();
  plan.report = {true, folder.path("report.json"), ""};
  const ClusterJob job = folder.job(plan, 5);
  do_parts(job, plan);
  const auto make_report = [&] {
    fs::remove_all(folder.path("report.json"));
    do_seal(job, plan);
    return errors_in("report.json");
  };
  // The measurements of a part may be lost; they are not repeated.
  const std::string measured = job.part_file(2, "measured.json"), text = read_text(measured);
  const bool is_lost = GENERATE(false, true);
  write_text(measured, is_lost ? text.substr(0, text.size() / 2) : text);
  const std::vector<json::value> made = make_report();
  REQUIRE(made.size() == right.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < made.size(); ++i)
    if (made[i] != right[i]) ++different;
  CHECK((different != 0) == is_lost);
  CHECK(different < made.size());
}

TEST_CASE("a seal before all parts are done asks to try again, or waits") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 4);
  do_part(job, plan, 0);
  do_part(job, plan, 2);
  const Error error = seal_error(job, plan);
  CHECK(error.code == ExitCode::kTransient);
  CHECK(error.what == "2 of 4 parts are not done: 1, 3");
  CHECK(folder.files().empty());
  std::future<void> later = std::async(std::launch::async, [&] {
    do_part(job, plan, 3);
    do_part(job, plan, 1);
  });
  SealOptions options;
  options.wait_seconds = 60;
  const auto sealed = seal(context(), job, plan, options);
  later.get();
  CHECK(sealed);
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("a part that is done twice at once is done") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 2);
  std::vector<std::future<bool>> attempts;
  for (int i = 0; i < 3; ++i)
    attempts.push_back(std::async(std::launch::async, [&] {
      PartOptions options;
      options.part = 1;
      return run_part(context(), job, plan, options).has_value();
    }));
  for (std::future<bool>& attempt : attempts) CHECK(attempt.get());
  do_part(job, plan, 0);
  do_seal(job, plan);
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("three seals at once are one") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 3);
  do_parts(job, plan);
  std::vector<std::future<Result<SealOutcome>>> seals;
  for (int i = 0; i < 3; ++i)
    seals.push_back(std::async(std::launch::async, [&] {
      SealOptions options;
      options.wait_seconds = 60;
      return seal(context(), job, plan, options);
    }));
  int sealed = 0;
  for (auto& one : seals) {
    const Result<SealOutcome> outcome = one.get();
    REQUIRE(outcome);
    if (!outcome.value().was_sealed) ++sealed;
  }
  CHECK(sealed == 1);
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("what was damaged before the seal is found, and that part alone is done again") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 3);
  do_parts(job, plan);
  // In the middle of the data that part 1 writes to the second file: the first shard or the next one.
  const PartPlaces places = places_of(plan, job.cuts, 1, 1).front();
  const Unit& unit = plan.units[job.cuts[1] + 1];
  const Step& step = plan.steps[unit.step];
  const Place& place = step.encodings[0].places[0];
  std::size_t file = place.file;
  for (std::uint32_t output = 0; output < place.output; ++output) file += plan.outputs[output].files.size();
  REQUIRE(std::ranges::count(places.files, file) == 1);
  corrupt(job, plan, file, place.offset + 5000);
  const bool is_hem = std::ranges::any_of(places.edges, [&](const Edge& edge) {
    return edge.file == file && edge.offset <= place.offset + 5000 && place.offset + 5000 < edge.offset + edge.bytes;
  });
  const auto first = seal(context(), job, plan, {});
  if (is_hem) {  // the seal writes edges itself
    CHECK(first);
  } else {
    REQUIRE(!first);
    CHECK(first.error().code == ExitCode::kTransient);
    CHECK(first.error().what == "part 1: the bytes on disk differ from those written");
    CHECK(folder.files().empty());
    CHECK((parts_done(job) == std::vector<bool>{true, false, true}));
    const PartOutcome again = do_part(job, plan, 1);
    CHECK(again.units_kept + 1 == again.units);
    do_seal(job, plan);
  }
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("each byte that is damaged before the seal is found or mended") {
  const JobFolder folder;
  const auto right = folder.right();
  std::mt19937 random(7);
  for (int round = 0; round < 8; ++round) {
    const Plan plan = folder.plan();
    fs::remove_all(folder.path("job"));
    fs::remove_all(folder.path("out"));
    const ClusterJob job = folder.job(plan, 3);
    do_parts(job, plan);
    const std::size_t file = random() % stored_files(plan).size();
    corrupt(job, plan, file, random() % stored_files(plan)[file].bytes);
    const auto first = seal(context(), job, plan, {});
    if (!first) {
      CHECK(first.error().code == ExitCode::kTransient);
      do_parts(job, plan);
      do_seal(job, plan);
    }
    CHECK((folder.files() == right));
  }
}

TEST_CASE("a part that is stopped keeps what it has done") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 1);
  std::atomic<bool> stop{false};
  PartOptions options;
  options.stop = &stop;
  options.progress = [&](const Progress&) { stop = true; };
  std::atomic<int> calls{0};
  const auto outcome = [&] {
    const HookedCalls hooked([&] {
      if (++calls == 100) stop = true;  // before any progress was reported
      return 0;
    });
    return run_part(context(), job, plan, options);
  }();
  REQUIRE(!outcome);
  CHECK(outcome.error().code == ExitCode::kTransient);
  const auto heartbeat = read_heartbeat(job, 0);
  REQUIRE(heartbeat);
  CHECK(heartbeat->state == Heartbeat::State::kStopped);
  const std::size_t kept = heartbeat->units;
  const PartOutcome again = do_part(job, plan, 0);
  CHECK(again.units_kept == kept);
  do_seal(job, plan);
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("killed at any system call, a part is gone on with") {
  const JobFolder folder;
  const auto right = folder.right();
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 2);
  std::size_t kills = 0;
  const auto part = [&] { return run_part(context(), job, plan, {}).has_value(); };
  for (int k = 5; killed_at(k, part); k = k * 4 / 3 + 3) ++kills;
  CHECK(kills > 4);
  do_parts(job, plan);
  do_seal(job, plan);
  CHECK((folder.files() == right));
}

TEST_CASE("killed at any system call, a seal is completed by the next one, with its manifests") {
  const JobFolder folder(SourceKind::kGguf, "manifest: true\n");
  const auto right = folder.right();
  std::size_t kills = 0;
  for (int k = 2; kills < 100; k = k * 9 / 8 + 1, ++kills) {
    CAPTURE(k);
    const std::string outputs = fmt::format("out{}", k);
    const Plan plan = folder.plan(outputs);
    const ClusterJob job = folder.job(plan, 2);
    do_parts(job, plan);
    const bool was_killed = killed_at(k, [&] { return seal(context(), job, plan, {}).has_value(); });
    do_seal(job, plan);
    CHECK((folder.files(outputs) == right));
    REQUIRE(remove_job(job));
    fs::remove_all(folder.path(outputs));
    if (!was_killed) break;
  }
  CHECK(kills > 8);
}

TEST_CASE("a temporary fault is tried again, and a lasting one is reported") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 2);
  {
    const FaultAt fault(120, EIO);
    do_part(job, plan, 0);
  }
  fs::remove(folder.path("model.gguf"));
  PartOptions options;
  options.part = 1;
  const auto outcome = run_part(context(), job, plan, options);
  REQUIRE(!outcome);
  CHECK(outcome.error().code == ExitCode::kBadInput);
  const auto heartbeat = read_heartbeat(job, 1);
  REQUIRE(heartbeat);
  CHECK(heartbeat->state == Heartbeat::State::kFailed);
  CHECK(heartbeat->exit_code == static_cast<int>(ExitCode::kBadInput));
}

TEST_CASE("parts that do not exist, jobs that are none, and outputs that somebody removed") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 2);
  PartOptions options;
  options.part = 2;
  CHECK(run_part(context(), job, plan, options).error().what == "part 2 does not exist");
  CHECK(load_job_folder(folder.path("out")).error().code == ExitCode::kUsage);
  CHECK(create_job(job, plan).error().code == ExitCode::kUsage);  // it already exists
  do_part(job, plan, 0);
  CHECK((prepare_resume(job, plan).value() == std::vector<std::size_t>{1}));
  REQUIRE(remove_outputs(job, plan));
  options.part = 1;
  CHECK(run_part(context(), job, plan, options).error().code == ExitCode::kIo);
  CHECK((prepare_resume(job, plan).value() == std::vector<std::size_t>{0, 1}));
  do_parts(job, plan);
  do_seal(job, plan);
  CHECK((folder.files() == folder.right()));
}

namespace {

// Returns the temporary files of the outputs that a part writes to.
std::vector<std::string> files_of(const ClusterJob& job, const Plan& plan, std::size_t part) {
  std::vector<std::string> files;
  const PartPlaces places = places_of(plan, job.cuts, part, 1).front();
  for (const std::size_t file : places.files) files.push_back(temporary_path(stored_files(plan)[file].path, job.key()));
  return files;
}

struct Loss {
  const char* what;
  std::function<void(const ClusterJob&, const Plan&)> make;  // damages the data written by part 1
};

const Loss kLosses[] = {
    {"is missing", [](const auto& job, const auto& plan) { fs::remove(files_of(job, plan, 1).front()); }},
    {"has 100 bytes, not ",
     [](const auto& job, const auto& plan) { fs::resize_file(files_of(job, plan, 1).front(), 100); }},
    {"is not the file that the part wrote",
     [](const auto& job, const auto& plan) {
       const std::string path = files_of(job, plan, 1).front();
       fs::copy_file(path, path + ".copy");
       fs::rename(path + ".copy", path);
     }},
    {"bytes that it wrote are missing from",
     [](const auto& job, const auto& plan) {
       const std::string path = files_of(job, plan, 1).front();
       const auto bytes = fs::file_size(path);
       fs::resize_file(path, 0);
       fs::resize_file(path, bytes);
     }},
    {"is missing or truncated", [](const auto& job, const auto&) { fs::remove(job.part_file(1, "edges")); }},
};

}  // namespace

TEST_CASE("a part whose bytes are gone is not done, whoever asks") {
  const std::size_t which = GENERATE(range(std::size_t{0}, std::size(kLosses)));
  const Loss& loss = kLosses[which];
  CAPTURE(loss.what);
  const JobFolder folder;
  PlannedArray planned;
  planned.plans.push_back(folder.plan());
  const Plan& plan = planned.plans.front();
  const ClusterJob job = folder.job(plan, 3);
  planned.array = array_of(job);
  do_parts(job, plan);
  REQUIRE(JobWatch(planned).look(false).count(PartStatus::State::kDone) == 3);
  loss.make(job, plan);

  const JobStatus status = JobWatch(planned).look(false);
  CHECK(status.state == JobStatus::State::kNeedsResume);
  CHECK(status.parts[1].state == PartStatus::State::kMissing);
  CHECK(status.parts[1].units_done == 0);
  CHECK(status.parts[1].lost.find(loss.what) != std::string::npos);
  SECTION("a seal undoes it") {
    const Error error = seal_error(job, plan);
    CHECK(error.code == ExitCode::kTransient);
    CHECK(error.what.find(loss.what) != std::string::npos);
    CHECK_FALSE(parts_done(job)[1]);
  }
  SECTION("and so does a resume") {}
  const std::vector<std::size_t> missing = prepare_resume(job, plan).value();
  CHECK(std::ranges::count(missing, std::size_t{1}) == 1);
  for (const std::size_t part : missing) CHECK_FALSE(do_part(job, plan, part).was_done);
  do_seal(job, plan);
  CHECK((folder.files() == folder.right()));
  CHECK(leftovers(folder) == 0);
}

TEST_CASE("a hole of zeros that a part wrote is not a loss") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 3);
  do_parts(job, plan);
  // Punches holes where the bytes happen to be zeros, as a compressing file system does.
  const std::string path = files_of(job, plan, 1).front();
  const std::string before = read_text(path);
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  constexpr off_t kPage = 4096;
  std::size_t holes = 0;
  for (off_t at = 0; at + kPage <= static_cast<off_t>(before.size()); at += kPage)
    if (before.find_first_not_of('\0', static_cast<std::size_t>(at)) >= static_cast<std::size_t>(at + kPage))
      holes += ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, kPage) == 0;
  CAPTURE(holes);
  CHECK(DoneParts(job, plan).is_done(1));
  do_seal(job, plan);
  CHECK((folder.files() == folder.right()));
}

TEST_CASE("a run refuses the outputs of a cluster job, until the job has sealed them or is removed") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const ClusterJob job = folder.job(plan, 2);
  do_part(job, plan, 0);
  const std::string before = read_text(files_of(job, plan, 0).front());
  const Leftovers left = context().leftovers(plan);
  CHECK((left.cluster_jobs() == std::vector<std::string>{job.folder}));
  CHECK_FALSE(left.is_running());
  CHECK_FALSE(left.can_resume());
  RunOptions overwriting;
  overwriting.overwrite = true;
  const auto run = context().run(plan, overwriting);
  REQUIRE(!run);
  CHECK(run.error().code == ExitCode::kUsage);
  CHECK(run.error().what.find(fmt::format("the cluster job in '{}' is writing this output", job.folder)) == 0);
  CHECK(context().discard(left).error().code == ExitCode::kUsage);
  CHECK(read_text(files_of(job, plan, 0).front()) == before);
  SECTION("sealed") {
    do_part(job, plan, 1);
    do_seal(job, plan);
    CHECK(context().leftovers(plan).files.empty());
    CHECK(context().run(plan, overwriting));
  }
  SECTION("removed") {
    REQUIRE(remove_outputs(job, plan));
    REQUIRE(remove_job(job));
    CHECK(context().leftovers(plan).files.empty());
    CHECK(context().run(plan, {}));
  }
  SECTION("its folder removed by somebody") {
    fs::remove_all(job.folder);
    CHECK(context().leftovers(plan).cluster_jobs().empty());
    CHECK(context().discard(context().leftovers(plan)));
    CHECK(leftovers(folder) == 0);
    CHECK(context().run(plan, {}));
  }
}

TEST_CASE("no job is made of outputs that a run is writing") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  SubmitOptions options;
  options.cluster.parts = 2;
  options.cluster.folder = folder.path("job");
  const ClusterJob job = make_job(plan, options).value();
  std::optional<Status> made;
  RunOptions run;
  run.progress = [&](const Progress&) {
    if (!made) made = create_job(job, plan);
  };
  REQUIRE(context().run(plan, run));
  REQUIRE(made);
  CHECK(made->error().code == ExitCode::kTransient);
  CHECK(made->error().what == "another run is writing this output now");
  CHECK((folder.files() == folder.right()));
}
