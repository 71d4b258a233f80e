#include "pipeline/cluster/status.h"

#include <boost/json.hpp>

#include "pipeline/cluster/test_job.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace json = boost::json;

namespace {

using State = PartStatus::State;

// A job of two parts without an engine, whose parts were not started.
struct Watched {
  TempDir folder;
  PlannedArray planned;

  Watched() {
    planned.plans.push_back(plan_of_units(2, folder.path()));
    ClusterJob job = job_of(planned.plans[0], folder.path());
    job.options.engine = ClusterOptions::Engine::kNone;
    planned.array = array_of(job);
  }
  const ClusterJob& job() const { return planned.array.jobs[0]; }
  JobStatus look() const { return JobWatch(planned).look(false); }
};

JobStatus job_status_of(const std::vector<PartStatus>& parts) {
  JobStatus status;
  status.parts = parts;
  return status;
}

}  // namespace

TEST_CASE("parts that were not started are missing, and the job needs to be resumed") {
  const JobStatus status = Watched().look();
  CHECK(status.count(State::kMissing) == 2);
  CHECK(status.state == JobStatus::State::kNeedsResume);
  CHECK(status.sealed == std::vector<bool>{false});
  CHECK(status.part_done() == 0);
}

TEST_CASE("a part whose last attempt failed has failed, with its host and error") {
  const Watched watched;
  REQUIRE(write_heartbeat(watched.job(), 1, {Heartbeat::State::kFailed, "a", "node", 2, 0, 0, 4, "a NaN"}));
  const PartStatus part = watched.look().parts.at(1);
  CHECK(part.state == State::kFailed);
  CHECK(part.host == "node");
  CHECK(part.error == "a NaN");
}

TEST_CASE("a part runs while its heartbeat changes") {
  const Watched watched;
  JobWatch watch(watched.planned);
  Heartbeat heartbeat{Heartbeat::State::kRunning, "a", "node", 1, 0, 0, 0, ""};
  REQUIRE(write_heartbeat(watched.job(), 0, heartbeat));
  CHECK(watch.look(false).parts.at(0).state == State::kMissing);  // it may be old
  ++heartbeat.count;
  REQUIRE(write_heartbeat(watched.job(), 0, heartbeat));
  const JobStatus status = watch.look(false);
  CHECK(status.parts.at(0).state == State::kRunning);
  CHECK(status.state == JobStatus::State::kRunning);
}

TEST_CASE("a heartbeat counts no more units than the part has") {
  const Watched watched;
  REQUIRE(write_heartbeat(watched.job(), 0, {Heartbeat::State::kStopped, "a", "node", 1, 99, 0, 75, ""}));
  CHECK(watched.look().parts.at(0).units_done == 1);
}

TEST_CASE("a part with a marker whose output is missing is not done, and the reason is given") {
  const Watched watched;
  DoneMarker marker;
  marker.units = {{0, {1}}};
  marker.inodes = {1};
  REQUIRE(write_done(watched.job(), 0, marker));
  const PartStatus part = watched.look().parts.at(0);
  CHECK(part.state == State::kMissing);
  CHECK(part.lost.find("is missing") != part.lost.npos);
}

TEST_CASE("the part that is done is weighted by cost") {
  const JobStatus status = job_status_of({{.state = State::kDone, .units = 4, .units_done = 4, .cost = 3},
                                          {.state = State::kRunning, .units = 4, .units_done = 2, .cost = 1}});
  CHECK(status.part_done() == 0.875);
}

TEST_CASE("a job without costs is done") { CHECK(job_status_of({}).part_done() == 1); }

TEST_CASE("the status of a job as JSON") {
  const Watched watched;
  JobStatus status = job_status_of({{.state = State::kQueued, .units = 4, .engine = "PENDING (Resources)"}});
  status.state = JobStatus::State::kRunning;
  status.seal = "PENDING (Dependency)";
  const json::object object = describe_status(watched.planned.array, status);
  CHECK(object.at("folder") == json::value(watched.folder.path().string()));
  CHECK(object.at("state") == json::value("running"));
  CHECK(object.at("done") == json::value(0));
  CHECK(object.at("seal") == json::value("PENDING (Dependency)"));
  const json::value& part = object.at("parts").as_array().at(0);
  CHECK(part.at("state") == json::value("queued"));
  CHECK(part.at("units") == json::value(4));
  CHECK(part.at("engine") == json::value("PENDING (Resources)"));
  CHECK_FALSE(object.contains("jobs"));
}

TEST_CASE("the status of a matrix names its jobs") {
  Watched watched;
  watched.planned.array.is_matrix = true;
  watched.planned.array.jobs[0].source = "a.gguf";
  JobStatus status = job_status_of({});
  status.sealed = {true};
  const json::object object = describe_status(watched.planned.array, status);
  const json::value& job = object.at("jobs").as_array().at(0);
  CHECK(job.at("source") == json::value("a.gguf"));
  CHECK(job.at("sealed") == json::value(true));
  CHECK(job.at("parts") == json::value(2));
}
