#include "pipeline/cluster/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "pipeline/cluster/seal.h"
#include "pipeline/core/option_reference.h"

namespace ggufmill {
namespace {

constexpr std::string_view kJobStates[] = {"sealed", "running", "needs resume"};
constexpr std::chrono::seconds kPatience{12};  // the heartbeat interval is 10 s

std::string describe(const SlurmTask& task) {
  return task.reason.empty() || task.reason == "None" ? task.state : fmt::format("{} ({})", task.state, task.reason);
}

std::string in_one_line(const Error& error) {
  std::string text = error.where.empty() ? error.what : fmt::format("{}: {}", error.where, error.what);
  if (!error.help.empty()) text += "; " + error.help;
  return with_plain_options(text);
}

}  // namespace

std::size_t JobStatus::count(PartStatus::State one) const {
  return static_cast<std::size_t>(std::ranges::count(parts, one, &PartStatus::state));
}

double JobStatus::part_done() const {
  double all = 0, done = 0;
  for (const PartStatus& part : parts) {
    all += part.cost;
    done += part.units ? part.cost * static_cast<double>(part.units_done) / static_cast<double>(part.units) : part.cost;
  }
  return all > 0 ? done / all : 1;
}

JobWatch::JobWatch(const PlannedArray& planned)
    : array_(planned.array), plans_(planned.plans), heartbeats_(array_.parts()), last_beat_(array_.parts()) {
  for (std::size_t i = 0; i < array_.jobs.size(); ++i) done_.emplace_back(array_.jobs[i], plans_[i]);
}

PartStatus JobWatch::look_at(std::size_t part, const std::optional<SlurmView>& slurm) {
  const auto [number, own] = array_.place_of(part);
  const ClusterJob& job = array_.jobs[number];
  PartStatus status;
  status.units = job.range(own).last - job.range(own).first;
  status.cost = job.costs[own];
  const SlurmTask* task = nullptr;
  if (slurm)
    if (const auto found = slurm->parts.find(part); found != slurm->parts.end()) task = &found->second;
  if (task) status.engine = describe(*task);
  if (const auto heartbeat = read_heartbeat(job, own)) {
    std::string now = fmt::format("{} {}", heartbeat->attempt, heartbeat->count);
    if (has_looked_ && now != heartbeats_[part]) last_beat_[part] = Clock::now();
    heartbeats_[part] = std::move(now);
    const bool is_alive = last_beat_[part] != Clock::time_point() && Clock::now() - last_beat_[part] < kPatience;
    if (is_alive && heartbeat->state == Heartbeat::State::kRunning) status.state = PartStatus::State::kRunning;
    status.host = heartbeat->host;
    status.units_done = std::min(heartbeat->units, status.units);
    status.error = heartbeat->error;
    if (heartbeat->state == Heartbeat::State::kFailed) status.state = PartStatus::State::kFailed;
  }
  if (task && task->is_active())
    status.state = task->state == "PENDING" ? PartStatus::State::kQueued : PartStatus::State::kRunning;
  return status;
}

JobStatus JobWatch::look(bool patient) {
  JobStatus status;
  std::optional<SlurmView> slurm;
  if (array_.jobs.front().options.engine == ClusterOptions::Engine::kSlurm) {
    auto view = look_at_slurm(array_);
    if (view)
      slurm = std::move(view).value();
    else
      status.warnings.push_back("cannot get the state of the job from Slurm: " + in_one_line(view.error()));
  }
  const auto end = Clock::now() + kPatience;
  for (;;) {
    status.parts.clear();
    bool may_live = false;  // a part claims to run, and neither the engine nor heartbeats confirm it
    for (std::size_t i = 0; i < array_.jobs.size(); ++i) {
      const ClusterJob& job = array_.jobs[i];
      if (has_looked_) done_[i].look();
      for (std::size_t part = 0; part < job.parts(); ++part) {
        PartStatus& one = status.parts.emplace_back();
        if (done_[i].is_done(part)) {
          one.state = PartStatus::State::kDone;
          one.cost = job.costs[part];
          one.units = one.units_done = job.range(part).last - job.range(part).first;
          continue;
        }
        one = look_at(job.first_part + part, slurm);
        one.lost = done_[i].lost(part);
        if (!one.lost.empty() && one.state == PartStatus::State::kMissing) one.units_done = 0;
        const auto heartbeat = one.state == PartStatus::State::kMissing ? read_heartbeat(job, part) : std::nullopt;
        if (heartbeat && heartbeat->state == Heartbeat::State::kRunning) may_live = true;
      }
    }
    has_looked_ = true;
    const bool is_vouched = slurm && slurm->is_active();
    if (!patient || is_vouched || !may_live || status.count(PartStatus::State::kRunning) != 0 || Clock::now() > end)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  if (slurm && slurm->seal) status.seal = describe(*slurm->seal);
  for (std::size_t i = 0; i < array_.jobs.size(); ++i) status.sealed.push_back(is_sealed(array_.jobs[i], plans_[i]));
  if (std::ranges::count(status.sealed, false) == 0)
    status.state = JobStatus::State::kSealed;
  else if ((slurm && slurm->is_active()) || status.count(PartStatus::State::kRunning) != 0)
    status.state = JobStatus::State::kRunning;
  return status;
}

namespace {

boost::json::array jobs_json(const ClusterArray& array, const JobStatus& status) {
  boost::json::array jobs;
  for (std::size_t i = 0; i < array.jobs.size(); ++i) {
    const ClusterJob& job = array.jobs[i];
    jobs.push_back(boost::json::object{{"source", job.source},
                                       {"folder", job.folder},
                                       {"sealed", static_cast<bool>(status.sealed[i])},
                                       {"first_part", job.first_part},
                                       {"parts", job.parts()}});
  }
  return jobs;
}

}  // namespace

boost::json::object describe_status(const ClusterArray& array, const JobStatus& status) {
  namespace json = boost::json;
  json::array parts;
  for (const PartStatus& part : status.parts)
    parts.push_back(json::object{{"state", kPartStates[static_cast<std::size_t>(part.state)]},
                                 {"units", part.units},
                                 {"units_done", part.units_done},
                                 {"host", part.host},
                                 {"engine", part.engine},
                                 {"error", part.error},
                                 {"lost", part.lost}});
  json::object object{{"folder", array.folder},
                      {"state", kJobStates[static_cast<std::size_t>(status.state)]},
                      {"done", status.count(PartStatus::State::kDone)},
                      {"part_done", status.part_done()},
                      {"seal", status.seal},
                      {"parts", std::move(parts)}};
  if (array.is_matrix) object["jobs"] = jobs_json(array, status);
  return object;
}

}  // namespace ggufmill
