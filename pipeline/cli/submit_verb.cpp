// `ggufmill submit`: submits a pipeline file to a cluster.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/api/command.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/edges.h"
#include "pipeline/cluster/slurm.h"
#include "pipeline/cluster/submit.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec submit_command() {
  CommandSpec spec;
  spec.usage = "ggufmill submit FILE [options]";
  spec.description =
      "Plan a pipeline file, divide the plan into parts, and submit them to the engine that `cluster:` in the file "
      "names: Slurm, as an array of parts and a job that seals the outputs once all parts are done; or none, to start "
      "`ggufmill part` yourself. The job is stored in a folder that all nodes must see; pass it to `status`, `resume`, "
      "and `cancel`. The sources of a matrix share one array and one seal, which seals the finished sources.";
  spec.examples =
      "  ggufmill submit llama.yaml --dry-run\n"
      "  ggufmill submit llama.yaml --parts 64\n"
      "  ggufmill status llama.job --watch";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("folder", po::value<std::string>(), "folder for the job; overrides cluster.folder");
  add("parts", po::value<unsigned>(), "number of parts; overrides cluster.parts");
  add("engine", po::value<std::string>(), "slurm or none; overrides cluster.engine");
  add("overwrite", "replace existing outputs");
  add("dry-run", "show what would be done without writing or submitting anything");
  add("threads", po::value<std::string>(), "number of threads, or auto; overrides limits.threads");
  return spec;
}

Status override_cluster(const po::variables_map& values, ClusterOptions& cluster) {
  cluster.folder = value_or<std::string>(values, "folder", cluster.folder);
  cluster.parts = value_or<unsigned>(values, "parts", cluster.parts);
  if (cluster.parts > ClusterOptions::kMaxParts || (values.count("parts") && cluster.parts == 0))
    return usage_error(fmt::format("--parts {} is not in the range 1 to {}", cluster.parts, ClusterOptions::kMaxParts));
  const auto engine = value_or<std::string>(values, "engine", "");
  if (engine == "slurm")
    cluster.engine = ClusterOptions::Engine::kSlurm;
  else if (engine == "none")
    cluster.engine = ClusterOptions::Engine::kNone;
  else if (!engine.empty())
    return usage_error(fmt::format("unknown engine '{}'", engine), "--engine must be slurm or none");
  return ok();
}

constexpr std::size_t kMaxRows = 40;

void add_rows(std::vector<Row>& rows, const ClusterJob& job, const Plan& plan, bool is_of_matrix) {
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

void print_parts(const PlannedArray& planned) {
  const ClusterArray& array = planned.array;
  std::vector<Row> rows;
  for (std::size_t i = 0; i < array.jobs.size(); ++i) add_rows(rows, array.jobs[i], planned.plans[i], array.is_matrix);
  std::vector<Column> columns{whole_column("part"),     {"units", Align::kRight}, {"reads", Align::kRight},
                              {"files", Align::kRight}, {"edges", Align::kRight}, {"cost", Align::kRight}};
  if (array.is_matrix) columns.push_back(name_column("source"));
  std::fputs(render_table(columns, rows).c_str(), stdout);
  if (array.parts() > kMaxRows) fmt::print("and {} more parts\n", array.parts() - kMaxRows);
}

// Prints what would be submitted.
void print_engine(const ClusterArray& array) {
  if (array.jobs.front().options.engine == ClusterOptions::Engine::kNone)
    return print_manual_commands(array, all_parts(array));
  const std::string program = this_program();
  fmt::print("\n{0}\n{1}\n\n{2}/part.sh:\n{3}\n{2}/seal.sh:\n{4}", shell_words(parts_command(array, all_parts(array))),
             shell_words(seal_command(array, "THE_ARRAY")), array.folder, part_script(array, program),
             seal_script(array, program));
}

Result<SubmitOptions> submit_options(const Job& job, const po::variables_map& values) {
  SubmitOptions options;
  if (job.cluster) options.cluster = *job.cluster;
  BOOST_OUTCOME_TRY(override_cluster(values, options.cluster));
  options.overwrite = values.count("overwrite") > 0;
  options.kernels = {value_or<Strings>(values, "kernel-dir", {}), value_or<std::string>(values, "isa", {})};
  return options;
}

Status start(const ClusterArray& array) {
  const std::vector<std::size_t> parts = all_parts(array);
  BOOST_OUTCOME_TRY(const auto submitted, start_parts(array, parts, this_program()));
  print_started(array, parts, submitted);
  return ok();
}

Status submit(Context context, Job job, const po::variables_map& values) {
  BOOST_OUTCOME_TRY(const SubmitOptions options, submit_options(job, values));
  if (!values.count("dry-run")) {
    BOOST_OUTCOME_TRY(check_folder_is_free(job.file, options.cluster));
  }
  BOOST_OUTCOME_TRY(const Planned planned, plan_job(std::move(context), std::move(job), values));
  BOOST_OUTCOME_TRY(PlannedArray all, plan_single(planned.context, planned.plan, options));
  if (values.count("dry-run")) {
    print_parts(all);
    print_engine(all.array);
    return ok();
  }
  BOOST_OUTCOME_TRY(create_array(all));
  print_note(fmt::format("created the job in {}; parts: {}", all.array.folder, all.array.parts()));
  return start(all.array);
}

// Plans the outputs of a batch that can be made and do not exist yet. The caller reports the others.
Result<PlannedArray> submit_sources(const Loaded& loaded, const po::variables_map& values) {
  BOOST_OUTCOME_TRY(const SubmitOptions options, submit_options(loaded.batch.jobs.front().job, values));
  const auto adjust = [&](const std::string&, Job& job) { return read_job_options(values, job); };
  BOOST_OUTCOME_TRY(PlannedArray planned, plan_matrix(loaded.context, loaded.batch, options, adjust));
  if (planned.array.jobs.empty()) return planned;
  for (const Plan& plan : planned.plans) print_warnings(plan.warnings);
  if (values.count("dry-run")) {
    print_parts(planned);
    print_engine(planned.array);
    return planned;
  }
  BOOST_OUTCOME_TRY(create_array(planned));
  const ClusterArray& array = planned.array;
  if (array.jobs.empty()) return planned;
  print_note(
      fmt::format("created the jobs of {} sources in {}; parts: {}", array.jobs.size(), array.folder, array.parts()));
  BOOST_OUTCOME_TRY(start(array));
  return planned;
}

int submit_matrix(const Loaded& loaded, const po::variables_map& values) {
  const auto planned = submit_sources(loaded, values);
  if (!planned) return fail(planned.error());
  for (const BatchCell& cell : planned.value().array.skipped) print_cell(cell);
  return print_failures(planned.value().array.skipped);
}

int submit_verb(const Parsed& parsed) {
  auto loaded = load_from(parsed.values);
  if (!loaded) return fail(loaded.error());
  if (has_steps(loaded.value().batch))
    return fail(usage_error("a job with steps cannot be divided into parts",
                            "run it in a job of one node, for example with sbatch --wrap 'ggufmill run FILE'; or "
                            "submit a pipeline file without `compute`, `quality`, `card`, and `after`"));
  if (loaded.value().batch.is_matrix) return submit_matrix(loaded.value(), parsed.values);
  Job job = std::move(loaded.value().batch.jobs.front().job);
  const Status status = submit(std::move(loaded.value().context), std::move(job), parsed.values);
  return status ? 0 : fail(status.error());
}

}  // namespace

const Verb kSubmitVerb{"submit", OperationGroup::kCluster, "Submit a pipeline file to a cluster, in parts",
                       submit_command, submit_verb};

}  // namespace ggufmill
