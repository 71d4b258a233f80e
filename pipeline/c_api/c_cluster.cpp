// Cluster jobs of the C interface.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "pipeline/api/publish/publish.h"
#include "pipeline/c_api/c_options.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/cluster/kubernetes.h"
#include "pipeline/cluster/operations.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

constexpr const char* kProgram = "ggufmill";  // on the nodes

json::value described(const std::optional<Submission>& submitted) {
  if (!submitted) return nullptr;
  return json::object{{"parts", submitted->parts_id}, {"indices", submitted->indices}, {"seal", submitted->seal_id}};
}

struct SubmitChoices {
  SubmitOptions submit;
  std::string program = kProgram;
  bool dry_run = false;
};

Result<SubmitChoices> read_submit_choices(const char* text, const std::optional<ClusterOptions>& cluster) {
  SubmitChoices choices;
  if (cluster) choices.submit.cluster = *cluster;
  ClusterOptions& it = choices.submit.cluster;
  std::size_t engine = static_cast<std::size_t>(it.engine);
  Options options(text);
  options.read("folder", it.folder);
  options.read("parts", it.parts, ClusterOptions::kMaxParts);
  options.read("engine", engine, Strings(std::begin(kClusterEngines), std::end(kClusterEngines)));
  options.read("overwrite", choices.submit.overwrite);
  options.read("dry_run", choices.dry_run);
  options.read("program", choices.program);
  options.read("isa", choices.submit.kernels.isa);
  options.read("kernel_dirs", choices.submit.kernels.directories);
  BOOST_OUTCOME_TRY(options.finish());
  it.engine = static_cast<ClusterOptions::Engine>(engine);
  return choices;
}

Result<PlannedArray> plan_array(const ggufmill_job& job, const SubmitOptions& options) {
  if (has_steps(job.batch))
    return usage_error("a job with steps cannot be divided into parts",
                       "run it on one node, or submit a pipeline file without steps");
  if (job.batch.is_matrix) return plan_matrix(*job.context, job.batch, options);
  const Job& single = job.batch.jobs.front().job;
  BOOST_OUTCOME_TRY(check_folder_is_free(single.file, options.cluster));
  BOOST_OUTCOME_TRY(const Plan plan, job.context->plan(single));
  return plan_single(*job.context, plan, options);
}

json::array described(const std::vector<BatchCell>& skipped) {
  json::array cells;
  for (const BatchCell& cell : skipped)
    cells.push_back(json::object{{"source", cell.source},
                                 {"output", cell.output},
                                 {"state", name_of(cell.state)},
                                 {"error", cell.error ? json::value(cell.error->what) : json::value()}});
  return cells;
}

Result<std::string> submit(const ggufmill_job& job, const char* text) {
  BOOST_OUTCOME_TRY(const SubmitChoices choices, read_submit_choices(text, job.batch.jobs.front().job.cluster));
  BOOST_OUTCOME_TRY(PlannedArray planned, plan_array(job, choices.submit));
  std::optional<Submission> submitted;
  const ClusterArray& array = planned.array;
  if (!choices.dry_run && !array.jobs.empty()) {
    BOOST_OUTCOME_TRY(create_array(planned));
  }
  if (!choices.dry_run && !array.jobs.empty()) {
    BOOST_OUTCOME_TRY(submitted, start_parts(array, all_parts(array), choices.program));
  }
  return to_json_text(json::object{{"folder", array.folder},
                                   {"plan", array.plan_file()},
                                   {"parts", array.jobs.empty() ? 0 : array.parts()},
                                   {"submitted", described(submitted)},
                                   {"skipped", described(array.skipped)}});
}

Result<OpenedPlans> open_folder(const char* folder) {
  BOOST_OUTCOME_TRY(ClusterArray array, load_array(folder));
  return open_plans(std::move(array));
}

Result<std::string> run_part_of(const char* folder, std::uint64_t part, const char* text, ggufmill_control* control) {
  std::optional<unsigned> threads;
  std::string isa;
  Options options(text);
  options.read("threads", threads, Limits::kMaxThreads);
  options.read("isa", isa);
  BOOST_OUTCOME_TRY(options.finish());
  BOOST_OUTCOME_TRY(ClusterArray array, load_array(folder));
  BOOST_OUTCOME_TRY(const OpenedArray opened, open_array(std::move(array), isa));
  PartOptions of_part;
  of_part.stop = stop_of(control);
  BOOST_OUTCOME_TRY(const PartOutcome done,
                    run_part(opened, part, threads, of_part, ProgressCaller(control).of_reading()));
  return to_json_text(json::object{{"was_done", done.was_done},
                                   {"units", done.units},
                                   {"units_kept", done.units_kept},
                                   {"seconds", done.run.seconds},
                                   {"warnings", json_texts(done.run.warnings)}});
}

// `json` receives the result even if jobs failed.
Status seal_folder(const char* folder, const char* text, ggufmill_control* control, char** json) {
  std::uint64_t wait = 0;
  Options options(text);
  options.read("wait", wait, 1'000'000);
  BOOST_OUTCOME_TRY(options.finish());
  BOOST_OUTCOME_TRY(const OpenedPlans opened, open_folder(folder));
  SealOptions of_seal;
  of_seal.wait_seconds = static_cast<double>(wait);
  of_seal.stop = stop_of(control);
  const SealedArray sealed = seal_array(opened, of_seal);
  Diagnostics failures;
  json::array jobs;
  for (std::size_t i = 0; i < sealed.outcomes.size(); ++i) {
    const Result<SealOutcome>& outcome = sealed.outcomes[i];
    if (!outcome) failures.add(outcome.error());
    jobs.push_back(!outcome ? json::value()
                            : json::object{{"source", opened.planned.array.jobs[i].source},
                                           {"was_sealed", outcome.value().was_sealed},
                                           {"edges", outcome.value().edges},
                                           {"seconds", outcome.value().seconds},
                                           {"warnings", json_texts(outcome.value().warnings)}});
  }
  if (sealed.report.unreported) failures.add(*sealed.report.unreported);
  if (json) *json = copy_of(to_json_text(json::object{{"jobs", std::move(jobs)}}));
  if (!failures.empty()) return failures.together();
  return ok();
}

Result<std::string> resume(const char* folder, const char* text) {
  std::string program = kProgram;
  Options options(text);
  options.read("program", program);
  BOOST_OUTCOME_TRY(options.finish());
  BOOST_OUTCOME_TRY(const OpenedPlans opened, open_folder(folder));
  BOOST_OUTCOME_TRY(const Resumed resumed, resume_array(opened.planned, program));
  return to_json_text(json::object{{"was_sealed", resumed.was_sealed},
                                   {"parts", json::value_from(resumed.parts)},
                                   {"submitted", described(resumed.submitted)},
                                   {"warnings", json_texts(resumed.warnings)}});
}

Result<std::string> render(const char* folder, const char* text) {
  KubernetesOptions it;
  Options options(text);
  options.read("claim", it.claim);
  options.read("mount", it.mount);
  options.read("image", it.image);
  BOOST_OUTCOME_TRY(options.finish());
  if (it.claim.empty())
    return usage_error("the option 'claim' is missing", "name the PersistentVolumeClaim of the shared volume");
  BOOST_OUTCOME_TRY(const ClusterArray array, load_array(folder));
  return kubernetes_manifest(array, it);
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_job_submit(const ggufmill_job* job, const char* options, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}, {"json", json}}));
    BOOST_OUTCOME_TRY(const std::string text, submit(*job, options));
    *json = copy_of(text);
    return ok();
  });
}

ggufmill_status ggufmill_cluster_status(const char* folder, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}, {"json", json}}));
    BOOST_OUTCOME_TRY(const OpenedPlans opened, open_folder(folder));
    const JobStatus status = JobWatch(opened.planned).look(true);
    *json = copy_of(to_json_text(describe_status(opened.planned.array, status)));
    return ok();
  });
}

ggufmill_status ggufmill_cluster_part(const char* folder, uint64_t part, const char* options, ggufmill_control* control,
                                      char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}}));
    BOOST_OUTCOME_TRY(const std::string text, run_part_of(folder, part, options, control));
    if (json) *json = copy_of(text);
    return ok();
  });
}

ggufmill_status ggufmill_cluster_seal(const char* folder, const char* options, ggufmill_control* control, char** json,
                                      ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}}));
    return seal_folder(folder, options, control, json);
  });
}

ggufmill_status ggufmill_cluster_resume(const char* folder, const char* options, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}, {"json", json}}));
    BOOST_OUTCOME_TRY(const std::string text, resume(folder, options));
    *json = copy_of(text);
    return ok();
  });
}

ggufmill_status ggufmill_cluster_cancel(const char* folder, const char* options, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}}));
    bool discard = false;
    Options given(options);
    given.read("discard", discard);
    BOOST_OUTCOME_TRY(given.finish());
    BOOST_OUTCOME_TRY(const OpenedPlans opened, open_folder(folder));
    BOOST_OUTCOME_TRY(cancel_array(opened.planned, discard));
    return ok();
  });
}

ggufmill_status ggufmill_cluster_render(const char* folder, const char* options, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}, {"json", json}}));
    BOOST_OUTCOME_TRY(const std::string text, render(folder, options));
    *json = copy_of(text);
    return ok();
  });
}
