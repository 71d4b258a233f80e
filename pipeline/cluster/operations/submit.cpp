// `submit`: submits a pipeline file to a cluster.

#include <fmt/format.h>

#include "pipeline/io/command.h"
#include "pipeline/api/operations/batches.h"
#include "pipeline/api/operations/jobs.h"
#include "pipeline/api/table.h"
#include "pipeline/cluster/edges.h"
#include "pipeline/cluster/operations/cluster_operations.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxRows = 40;

struct SubmitRequest : JobRequest {
  std::string folder{};
  std::optional<unsigned> parts{};
  std::optional<ClusterOptions::Engine> engine{};
  bool overwrite = false, dry_run = false;
  std::string program{}, isa{};
  std::vector<std::string> kernel_dirs{};
};

struct SubmittedJob {
  PlannedArray planned;  // without jobs if there is nothing to write
  std::optional<Submission> submitted{};
  bool is_dry = false;
  std::string program{};
};

SubmitOptions submit_options(const Context& context, const Job& job, const SubmitRequest& request) {
  SubmitOptions options;
  if (job.cluster) options.cluster = *job.cluster;
  if (!request.folder.empty()) options.cluster.folder = request.folder;
  if (request.parts) options.cluster.parts = *request.parts;
  if (request.engine) options.cluster.engine = *request.engine;
  options.overwrite = request.overwrite;
  options.kernels = context.kernel_options();
  if (!request.isa.empty()) options.kernels.isa = request.isa;
  if (!request.kernel_dirs.empty()) options.kernels.directories = request.kernel_dirs;
  return options;
}

// Creates the planned jobs and starts them.
Status start(SubmittedJob& job, const Call& call) {
  BOOST_OUTCOME_TRY(create_array(job.planned));
  const ClusterArray& array = job.planned.array;
  if (array.jobs.empty()) return ok();
  call.note({array.is_matrix ? fmt::format("created the jobs of {} sources in {}; parts: {}", array.jobs.size(),
                                           array.folder, array.parts())
                             : fmt::format("created the job in {}; parts: {}", array.folder, array.parts())});
  const std::vector<std::size_t> parts = all_parts(array);
  BOOST_OUTCOME_TRY(job.submitted, start_parts(array, parts, job.program));
  note_started({array, parts, job.submitted}, call);
  return ok();
}

// Plans the outputs of a batch that can be made and do not exist yet.
Result<PlannedArray> plan_sources(const Context& context, const Batch& batch, const SubmitRequest& request,
                                  const Call& call) {
  const SubmitOptions options = submit_options(context, batch.jobs.front().job, request);
  const auto adjust = [&](const std::string&, Job& job) -> Status {
    change_limits(request, job);
    return ok();
  };
  BOOST_OUTCOME_TRY(PlannedArray planned, plan_matrix(context, batch, options, adjust));
  for (const Plan& plan : planned.plans) call.warn_all(plan.warnings);
  return planned;
}

Result<PlannedArray> plan_job_of(const Context& context, Job job, const SubmitRequest& request, const Call& call) {
  const SubmitOptions options = submit_options(context, job, request);
  if (!request.dry_run) {
    BOOST_OUTCOME_TRY(check_folder_is_free(job.file, options.cluster));
  }
  BOOST_OUTCOME_TRY(const PlannedJob planned, plan_job(context, std::move(job), request, call));
  return plan_single(context, planned.plan, options);
}

Result<Answer<SubmittedJob>> run_submit(const Context& context, const SubmitRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(Batch batch, jobs_of(context, request, call));
  if (has_steps(batch))
    return usage_error("a job with steps cannot be divided into parts",
                       "run it in a job of one node, for example with sbatch --wrap 'ggufmill run FILE'; or submit a "
                       "pipeline file without `compute`, `quality`, `card`, and `after`");
  Answer<SubmittedJob> answer{};
  SubmittedJob& job = answer.value;
  job.is_dry = request.dry_run;
  job.program = program_on_nodes(request.program, call);
  if (batch.is_matrix) {
    BOOST_OUTCOME_TRY(job.planned, plan_sources(context, batch, request, call));
  } else {
    BOOST_OUTCOME_TRY(job.planned, plan_job_of(context, std::move(batch.jobs.front().job), request, call));
  }
  if (!job.is_dry && !job.planned.array.jobs.empty()) {
    BOOST_OUTCOME_TRY(start(job, call));
  }
  for (const BatchCell& cell : job.planned.array.skipped) note_cell(cell, call);
  answer.failure = failure_of(job.planned.array.skipped);
  answer.is_partial = true;
  return answer;
}

void add_rows_of_parts(std::vector<Row>& rows, const ClusterJob& job, const Plan& plan, bool is_of_matrix) {
  const std::vector<PartPlaces> places = places_of(plan, job.cuts, 0, job.parts());
  for (std::size_t part = 0; part < job.parts() && rows.size() < kMaxRows; ++part) {
    const UnitRange range = job.range(part);
    std::uint64_t bytes = 0;
    for (std::size_t i = range.first; i < range.last; ++i)
      bytes += plan.units[i].rows * plan.steps[plan.units[i].step].expression->row_bytes();
    rows.push_back({std::to_string(job.first_part + part), std::to_string(range.last - range.first), human_bytes(bytes),
                    std::to_string(places[part].files.size()), human_bytes(places[part].edge_bytes),
                    fmt::format("{:.2f}", job.costs[part])});
    if (is_of_matrix) rows.back().push_back(job.source);
  }
}

std::string table_of_parts(const PlannedArray& planned) {
  const ClusterArray& array = planned.array;
  std::vector<Row> rows;
  for (std::size_t i = 0; i < array.jobs.size(); ++i)
    add_rows_of_parts(rows, array.jobs[i], planned.plans[i], array.is_matrix);
  std::vector<Column> columns{whole_column("part"),     {"units", Align::kRight}, {"reads", Align::kRight},
                              {"files", Align::kRight}, {"edges", Align::kRight}, {"cost", Align::kRight}};
  if (array.is_matrix) columns.push_back(name_column("source"));
  return render_table(columns, rows) +
         (array.parts() > kMaxRows ? fmt::format("and {} more parts\n", array.parts() - kMaxRows) : "");
}

// Returns what would be submitted.
std::string commands_of(const ClusterArray& array, const std::string& program) {
  const std::vector<std::size_t> parts = all_parts(array);
  if (array.jobs.front().options.engine == ClusterOptions::Engine::kNone) return how_to_start(array, parts);
  return fmt::format("\n{0}\n{1}\n\n{2}/part.sh:\n{3}\n{2}/seal.sh:\n{4}", shell_words(parts_command(array, parts)),
                     shell_words(seal_command(array, "THE_ARRAY")), array.folder, part_script(array, program),
                     seal_script(array, program));
}

void print_submitted(const SubmittedJob& job, TextOutput& to) {
  const ClusterArray& array = job.planned.array;
  if (array.jobs.empty()) return;
  if (job.is_dry)
    to.out = table_of_parts(job.planned) + commands_of(array, job.program);
  else if (!job.submitted)
    to.out = how_to_start(array, all_parts(array));
}

template <class Get>
ResultMember submit_result(std::string_view name, Get get, std::string_view doc) {
  return result<SubmittedJob>(
      name,
      [get](const SubmittedJob& job) -> std::optional<boost::json::value> {
        return boost::json::value(get(job.planned.array, job));
      },
      doc);
}

boost::json::value describe_skipped(const ClusterArray& array) {
  boost::json::array cells;
  for (const BatchCell& cell : array.skipped)
    cells.push_back(
        boost::json::object{{"source", cell.source},
                            {"output", cell.output},
                            {"state", name_of(cell.state)},
                            {"error", cell.error ? boost::json::value(cell.error->what) : boost::json::value()}});
  return cells;
}

}  // namespace

OperationSpec submit_operation() {
  using Options = std::vector<Option<SubmitRequest>>;
  using Request = SubmitRequest;
  return operation(OperationOf<SubmitRequest, SubmittedJob>{
      .name = "submit",
      .group = OperationGroup::kCluster,
      .summary = "Submit a pipeline file to a cluster, in parts",
      .description =
          "Plan a pipeline file, divide the plan into parts, and submit them to the engine that `cluster:` in the file "
          "names: Slurm, as an array of parts and a job that seals the outputs once all parts are done; or none, to "
          "start `ggufmill part` yourself. The job is stored in a folder that all nodes must see; pass it to `status`, "
          "`resume`, and `cancel`. The sources of a matrix share one array and one seal, which seals the finished "
          "sources.",
      .examples = "  ggufmill submit llama.yaml --dry-run\n"
                  "  ggufmill submit llama.yaml --parts 64\n"
                  "  ggufmill status llama.job --watch",
      .options =
          Options() + pipeline_file_options() +
          Options{
              option("folder", &Request::folder, path(), "folder for the job; overrides cluster.folder"),
              option("parts", &Request::parts, integer<unsigned>().at_least(1).at_most(ClusterOptions::kMaxParts),
                     "number of parts; overrides cluster.parts"),
              option("engine", &Request::engine, enumeration<ClusterOptions::Engine>(kClusterEngines),
                     "slurm or none; overrides cluster.engine"),
              option("overwrite", &Request::overwrite, "replace existing outputs"),
              option("dry_run", &Request::dry_run, "show what would be done without writing or submitting anything"),
              threads_option(),
              option("program", &Request::program, path(),
                     "path of the program `ggufmill` on the nodes; default: this program, or `ggufmill`"),
              option("isa", &Request::isa, text(), "kernels for the parts; default: those of the context")
                  .only_for_programs(),
              option("kernel_dirs", &Request::kernel_dirs, list_of(path()),
                     "folders of kernel modules for the parts; default: those of the context")
                  .only_for_programs()},
      .result = {{submit_result(
                      "folder", [](const ClusterArray& array, const SubmittedJob&) { return array.folder; },
                      "the folder of the job"),
                  submit_result(
                      "plan", [](const ClusterArray& array, const SubmittedJob&) { return array.plan_file(); },
                      "its plan, for `part` and `seal`"),
                  submit_result(
                      "parts",
                      [](const ClusterArray& array, const SubmittedJob&) {
                        return array.jobs.empty() ? 0 : array.parts();
                      },
                      "the number of parts"),
                  submit_result(
                      "submitted",
                      [](const ClusterArray&, const SubmittedJob& job) { return describe_submission(job.submitted); },
                      "Slurm's numbers: {parts, indices, seal}; null with the engine `none`, whose parts the user "
                      "starts"),
                  submit_result(
                      "skipped", [](const ClusterArray& array, const SubmittedJob&) { return describe_skipped(array); },
                      "of a batch, the outputs that are unchanged or cannot be made: [{source, output, state, "
                      "error}]")}},
      .context = ContextUse::kCheckpoints,
      .run = run_submit,
      .print = print_submitted});
}

}  // namespace ggufmill
