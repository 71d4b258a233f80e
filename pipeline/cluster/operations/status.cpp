// `status`: shows the progress of a pipeline file's runs and the leftover files of interrupted ones, or the progress of
// a cluster job.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "pipeline/api/operations/jobs.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/table.h"
#include "pipeline/cluster/operations/cluster_operations.h"
#include "pipeline/cluster/status.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using State = PartStatus::State;

std::string_view word_of(State state) { return kPartStates[static_cast<std::size_t>(state)]; }

std::string counts_of_parts(const ClusterArray& array, const JobStatus& status) {
  std::string text = fmt::format("{} of {} parts done", status.count(State::kDone), status.parts.size());
  for (const State state : {State::kRunning, State::kQueued, State::kFailed, State::kMissing})
    if (const std::size_t count = status.count(state)) text += fmt::format(", {} {}", count, word_of(state));
  text = fmt::format("{} ({:.0f} %)", text, 100 * status.part_done());
  if (array.is_matrix)
    text += fmt::format("; {} of {} sources sealed", std::ranges::count(status.sealed, true), array.jobs.size());
  return text;
}

std::string next_step(const ClusterArray& array, const JobStatus& status) {
  if (status.state == JobStatus::State::kSealed) {
    const auto failed = std::ranges::count(array.skipped, CellState::kFailed, &BatchCell::state);
    return failed == 0
               ? "the outputs are complete"
               : fmt::format("the outputs are complete, except {} that failed when the job was submitted", failed);
  }
  if (status.state == JobStatus::State::kRunning)
    return status.seal.empty() ? "" : fmt::format("seal: {}", status.seal);
  if (status.count(State::kDone) == status.parts.size())
    return fmt::format(
        "all parts are done, but the outputs are not sealed: `ggufmill resume {}` continues with the seal",
        array.folder);
  return fmt::format("the job is not running: `ggufmill resume {}` continues it", array.folder);
}

// Returns a table of the parts that are not done: failed and missing parts first, then running and queued ones.
std::string table_of_unfinished(const ClusterArray& array, const JobStatus& status) {
  constexpr std::size_t kMax = 20;
  std::vector<Row> rows;
  std::size_t left = 0;
  for (const State state : {State::kFailed, State::kMissing, State::kRunning, State::kQueued})
    for (std::size_t i = 0; i < status.parts.size(); ++i) {
      const PartStatus& part = status.parts[i];
      if (part.state != state) continue;
      if (rows.size() == kMax) {
        ++left;
        continue;
      }
      rows.push_back({std::to_string(i), std::string(word_of(state)), fmt::format("{}/{}", part.units_done, part.units),
                      printable(part.host), printable(part.engine)});
      if (array.is_matrix) rows.back().push_back(printable(array.jobs[array.place_of(i).job].source));
    }
  if (rows.empty()) return "";
  std::vector<Column> columns{{"part", Align::kRight}, {"state"}, {"units", Align::kRight}, {"node"}, {"engine"}};
  if (array.is_matrix) columns.push_back(name_column("source"));
  std::string text = render_table(columns, rows);
  if (left != 0) text += fmt::format("and {} more parts\n", left);
  return text;
}

std::string errors_of_parts(const JobStatus& status) {
  constexpr std::size_t kMax = 3;
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < status.parts.size(); ++i)
    if (status.parts[i].state == State::kFailed && ++count <= kMax)
      text += fmt::format("part {}: {}", i, printable(status.parts[i].error, "\n"));
  count = 0;
  for (std::size_t i = 0; i < status.parts.size(); ++i)
    if (!status.parts[i].lost.empty() && ++count <= kMax)
      text += fmt::format("part {} was done but must be done again: {}\n", i, printable(status.parts[i].lost));
  return text;
}

std::string status_text(const ClusterArray& array, const JobStatus& status) {
  std::string text = fmt::format("{}: {}\n", printable(array.folder), counts_of_parts(array, status));
  text += table_of_unfinished(array, status) + errors_of_parts(status);
  if (const std::string next = next_step(array, status); !next.empty()) text += printable(next) + "\n";
  return text;
}

// ---- pipeline files ----

std::string progress_of(const Leftovers& left) {
  const std::uint64_t done = left.units_done.value_or(0);
  return fmt::format("{} of {} units of work are done ({:.0f} %)", done, left.units,
                     left.units ? 100.0 * static_cast<double>(done) / static_cast<double>(left.units) : 100.0);
}

std::string state_of(const Leftovers& left) {
  if (left.is_running()) return "a run is writing the outputs now: " + progress_of(left);
  if (left.can_resume()) return fmt::format("a run was interrupted: {}; `run` resumes from there", progress_of(left));
  const std::vector<std::string> jobs = left.cluster_jobs();
  if (jobs.empty()) return "no run is active";
  std::string text;
  for (const std::string& job : jobs)
    text += fmt::format("{0}the cluster job in {1} writes the outputs: `ggufmill status {1}` reports its progress",
                        text.empty() ? "" : "\n", job);
  return text;
}

struct StatusRequest : JobRequest {
  bool watch = false;
};

// The state of one job of a pipeline file.
struct StatusOfJob {
  std::string source{}, text{};
  json::object described{};
};

struct ShownStatus {
  std::vector<StatusOfJob> files{};
  // Set for a cluster job instead.
  std::string cluster{}, interim{};
  json::object described{};
};

std::string text_of_plan(const Plan& plan, const Leftovers& left, const std::set<std::string>& sent) {
  std::vector<Row> rows;
  bool all_measured = true;
  for (const PlannedOutput& output : plan.outputs) {
    all_measured = all_measured && is_measured(output);
    for (const OutputFile& file : output.files) {
      const std::optional<bool> exists = output_exists(file.path);
      const char* const state = !exists                    ? "unknown"
                                : *exists                  ? "exists"
                                : sent.contains(file.path) ? "sent"
                                                           : "missing";
      rows.push_back({remote::without_secrets(file.path), is_measured(output) ? human_bytes(file.bytes) : "-", state});
    }
  }
  std::string text = render_table({name_column("output"), {"size", Align::kRight}, {"state"}}, rows);
  if (!all_measured) text += "the target is not measured yet, so the sizes are unknown\n";
  text += state_of(left) + "\n";
  for (const Leftover& file : left.files) text += fmt::format("{}  {}\n", describe(file), human_bytes(file.bytes));
  return text;
}

Result<StatusOfJob> status_of_job(const Context& context, const PlannedJob& planned) {
  const BatchJob* const with_steps = planned.with_steps ? &*planned.with_steps : nullptr;
  StatusOfJob status{planned.source};
  status.text = text_of_plan(planned.plan, context.leftovers(planned.plan),
                             with_steps ? sent_files(context, *with_steps) : std::set<std::string>());
  status.described = describe_status(context, planned.plan, with_steps);
  if (!with_steps) return status;
  BOOST_OUTCOME_TRY(const std::vector<JobStep> steps, steps_of(context, *with_steps, {}));
  status.text += "\n" + table_of(steps);
  return status;
}

Result<Answer<ShownStatus>> status_of_file(const Context& context, const StatusRequest& request, const Call& call) {
  if (request.watch)
    return usage_error(option_reference("watch") + " requires the folder of a cluster job",
                       "a run shows its own progress");
  Answer<ShownStatus> answer{};
  Diagnostics errors;
  BOOST_OUTCOME_TRY(answer.is_partial,
                    for_each_plan(context, request, call, errors, [&](const PlannedJob& planned) -> std::vector<Error> {
                      auto status = status_of_job(context, planned);
                      if (!status) return {status.error()};
                      answer.value.files.push_back(std::move(status).value());
                      return {};
                    }));
  if (answer.value.files.empty()) return errors.together();
  if (!errors.empty()) answer.failure = errors.together();
  return answer;
}

// ---- cluster jobs ----

ShownStatus shown_status(const ClusterArray& array, const JobStatus& status, const Call& call) {
  call.warn_all(status.warnings);
  ShownStatus shown;
  shown.cluster = status_text(array, status);
  if (status.state == JobStatus::State::kRunning) shown.interim = counts_of_parts(array, status) + "\n";
  shown.described = describe_status(array, status);
  return shown;
}

Result<Answer<ShownStatus>> status_of_folder(const Context& context, const StatusRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, enter_plans(request.job.path, context, call));
  const ClusterArray& array = opened.planned.array;
  JobWatch looking(opened.planned);
  JobStatus status = looking.look(true);
  Answer<ShownStatus> answer{shown_status(array, status, call)};
  const std::atomic<bool>* const stop = request.watch ? call.stop() : nullptr;
  const auto is_stopped = [&] { return stop && *stop; };
  while (request.watch && status.state == JobStatus::State::kRunning && !is_stopped()) {
    if (call.interim) call.interim(std::make_shared<const ShownStatus>(answer.value));
    for (int i = 0; i < 20 && !is_stopped(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    status = looking.look(false);
    answer.value = shown_status(array, status, call);
  }
  answer.exit_code = static_cast<int>(status.state);
  return answer;
}

Result<Answer<ShownStatus>> run_status(const Context& context, const StatusRequest& request, const Call& call) {
  const bool is_folder = !call.jobs && request.job.text.empty() && is_array_folder(request.job.path);
  return is_folder ? status_of_folder(context, request, call) : status_of_file(context, request, call);
}

void print_shown_status(const ShownStatus& shown, TextOutput& to) {
  to.out = shown.cluster;
  to.interim = shown.interim;
  for (const StatusOfJob& each : shown.files) to.out += each.text;
}

void write_shown_status(const ShownStatus& shown, const TextSink& sink) {
  if (!shown.described.empty()) return sink(to_json_text(shown.described));
  std::vector<ObjectOfJob> objects;
  for (const StatusOfJob& each : shown.files) objects.push_back({each.source, each.described});
  write_objects(std::move(objects), sink);
}

}  // namespace

OperationSpec status_operation() {
  using Options = std::vector<Option<StatusRequest>>;
  return operation(OperationOf<StatusRequest, ShownStatus>{
      .name = "status",
      .group = OperationGroup::kConvert,
      .summary = "Show the progress of pipeline files and cluster jobs, and leftover files",
      .description =
          "Show which outputs of a pipeline file exist, whether a run is writing them now and its progress, and the "
          "leftover files of interrupted runs: `run` resumes from them, `run --discard` removes them. Gives the "
          "folder of a cluster job that writes the same outputs. Reads only headers and changes nothing.\n\nFor the "
          "folder of a cluster job, show the progress of its parts.",
      .for_command_line =
          "For a cluster job, exit code 0 means that the outputs are sealed; 1 that the job is running; "
          "2 that it is not running, and `ggufmill resume FOLDER` continues it.",
      .for_programs = "@job is a pipeline file or the folder of a cluster job, whose `state` is \"sealed\", "
                      "\"running\" or \"needs resume\".",
      .examples = "  ggufmill status job.yaml\n"
                  "  ggufmill status job.yaml --json\n"
                  "  ggufmill status llama.job --watch",
      .usage_words = "(FILE | FOLDER)",
      .options = Options() + pipeline_file_options() +
                 Options{option("watch", &StatusRequest::watch,
                                "for a cluster job: update every two seconds until it is no longer running")
                             .only_on_command_line()},
      .result = {.write = write_shown_status,
                 .doc = "{running, can_resume, units, units_done, outputs: [{path, bytes, there, sent}], leftovers: "
                        "[{path, output, bytes, of_this_plan, in_use, other_since, cluster_job}], cluster_jobs, "
                        "steps}, for a batch {sources: [{source, running, ...}]}; for a cluster job {folder, state, "
                        "done, part_done, seal, parts: [{state, units, units_done, host, engine, error, lost}]}, for a "
                        "matrix also {jobs}"},
      .context = ContextUse::kCheckpoints,
      .run = run_status,
      .print = print_shown_status});
}

}  // namespace ggufmill
