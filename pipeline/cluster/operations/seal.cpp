// `seal`: finishes a cluster job whose parts are done.

#include <fmt/format.h>

#include <charconv>

#include "pipeline/api/operations/batches.h"
#include "pipeline/cluster/operations/cluster_operations.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct SealRequest {
  std::string plan{}, wait{};
};

struct SealedJobs {
  SealedArray sealed;
  std::vector<std::string> sources{};  // of the jobs
  bool is_matrix = false;
};

// A number of seconds, or a duration with its unit.
Result<double> seconds_of(const std::string& text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(read.ptr, static_cast<std::size_t>(text.data() + text.size() - read.ptr));
  const double factor = unit == "s" || unit.empty() ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (read.ec == std::errc() && factor > 0 && number >= 0 && number <= 1e6) return number * factor;
  return usage_error(fmt::format("'{}' is not a valid duration", text), "give for example 90s, 30m, or 6h");
}

void note_sealed(const Plan& plan, const ClusterJob& job, const SealOutcome& outcome, const Call& call) {
  for (const StoredFile& file : stored_files(plan)) call.note({"wrote " + file.path});
  call.note({fmt::format("{} sealed in {:.2f} s, {}", counted(job.parts(), "part"), outcome.seconds,
                         counted(outcome.edges, "edge"))});
}

Result<Answer<SealedJobs>> run_seal(const Context& context, const SealRequest& request, const Call& call) {
  SealOptions options;
  if (!request.wait.empty()) {
    BOOST_OUTCOME_TRY(options.wait_seconds, seconds_of(request.wait));
  }
  options.stop = call.stop();
  BOOST_OUTCOME_TRY(const std::string folder, folder_of_plan(request.plan));
  BOOST_OUTCOME_TRY(const OpenedPlans opened, enter_plans(folder, context, call));
  const PlannedArray& planned = opened.planned;
  Answer<SealedJobs> answer{{seal_array(opened, options), {}, planned.array.is_matrix}};
  SealedJobs& jobs = answer.value;
  for (const ClusterJob& job : planned.array.jobs) jobs.sources.push_back(job.source);
  for (std::size_t i = 0; i < jobs.sealed.outcomes.size(); ++i) {
    const Result<SealOutcome>& outcome = jobs.sealed.outcomes[i];
    if (!outcome) continue;
    call.warn_all(outcome.value().warnings);
    if (!outcome.value().was_sealed) note_sealed(planned.plans[i], planned.array.jobs[i], outcome.value(), call);
  }
  answer.is_partial = jobs.is_matrix;
  if (jobs.is_matrix)
    answer.failure = failure_of(jobs.sealed.report);
  else if (!jobs.sealed.outcomes.front())
    answer.failure = jobs.sealed.outcomes.front().error();
  return answer;
}

void print_sealed_jobs(const SealedJobs& jobs, TextOutput& to) {
  if (jobs.is_matrix)
    to.notes.push_back(counts_of(jobs.sealed.report));
  else if (jobs.sealed.outcomes.front() && jobs.sealed.outcomes.front().value().was_sealed)
    to.notes.push_back({"the outputs were already sealed"});
}

std::optional<boost::json::value> described_jobs(const SealedJobs& jobs) {
  namespace json = boost::json;
  json::array list;
  for (std::size_t i = 0; i < jobs.sealed.outcomes.size(); ++i) {
    const Result<SealOutcome>& outcome = jobs.sealed.outcomes[i];
    list.push_back(!outcome ? json::value()
                            : json::object{{"source", jobs.sources[i]},
                                           {"was_sealed", outcome.value().was_sealed},
                                           {"edges", outcome.value().edges},
                                           {"seconds", outcome.value().seconds},
                                           {"warnings", json::value_from(outcome.value().warnings)}});
  }
  return list;
}

}  // namespace

OperationSpec seal_operation() {
  using Request = SealRequest;
  return operation(OperationOf<SealRequest, SealedJobs>{
      .name = "seal",
      .group = OperationGroup::kCluster,
      .summary = "Finish a cluster job whose parts are done",
      .description =
          "Finish the cluster job in DIR once all its parts are done: read its outputs from end to end, compare them "
          "with what the parts wrote, and give them their names. Damaged parts are reset, so that `ggufmill resume` "
          "runs them again. Does nothing if the job is already sealed. For a matrix, seal every source that is done, "
          "then report the state of the others.",
      .for_command_line = "Exit code 75 means that parts are not done or were reset. For a matrix, the exit code is "
                          "that of the first failure.",
      .examples = "  ggufmill seal --plan llama.job/plan.json\n"
                  "  ggufmill seal --plan llama.job/plan.json --wait 6h",
      .usage_words = "--plan DIR/plan.json",
      .options = {option("plan", &Request::plan, path(), "plan of the job, or its folder; required"),
                  option("wait", &Request::wait, text(),
                         "time to wait for unfinished parts: 90s, 30m, 6h, or a number of seconds")},
      .result = {{result<SealedJobs>("jobs", described_jobs,
                                     "for each job {source, was_sealed, edges, seconds, warnings}, or null if it "
                                     "failed")}},
      .context = ContextUse::kNone,
      .progress = "",
      .run = run_seal,
      .print = print_sealed_jobs});
}

}  // namespace ggufmill
