// `ggufmill submit`: brings a pipeline file to a cluster.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/command.h"
#include "pipeline/cluster/hems.h"
#include "pipeline/cluster/slurm.h"
#include "pipeline/cluster/submit.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill submit FILE [options]";
  spec.description =
      "Makes the plan of a pipeline file, cuts it into parts and hands them to the engine that its `cluster:` names: "
      "Slurm, as an array of parts and a job that seals the outputs when all parts are done; or none, for those who "
      "start `ggufmill part` themselves. The job lives in a folder that all nodes have to see: `status`, `resume` and "
      "`cancel` take it. A matrix is a job for each of its sources, in folders of that.";
  spec.examples =
      "  ggufmill submit llama.yaml --dry-run\n"
      "  ggufmill submit llama.yaml --parts 64\n"
      "  ggufmill status llama.job --watch";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("folder", po::value<std::string>(), "as cluster.folder: where the job lives");
  add("parts", po::value<unsigned>(), "as cluster.parts: how many parts");
  add("engine", po::value<std::string>(), "as cluster.engine: slurm or none");
  add("overwrite", "replace outputs that are there already");
  add("dry-run", "say what would be done; write and submit nothing");
  add("threads", po::value<std::string>(), "as limits.threads: a number, or auto");
  return spec;
}

Status override_cluster(const po::variables_map& values, ClusterOptions& cluster) {
  cluster.folder = value_or<std::string>(values, "folder", cluster.folder);
  cluster.parts = value_or<unsigned>(values, "parts", cluster.parts);
  if (cluster.parts > ClusterOptions::kMostParts || (values.count("parts") && cluster.parts == 0))
    return usage_error(fmt::format("--parts {} is not from 1 to {}", cluster.parts, ClusterOptions::kMostParts));
  const auto engine = value_or<std::string>(values, "engine", "");
  if (engine == "slurm")
    cluster.engine = ClusterOptions::Engine::kSlurm;
  else if (engine == "none")
    cluster.engine = ClusterOptions::Engine::kNone;
  else if (!engine.empty())
    return usage_error(fmt::format("unknown engine '{}'", engine), "--engine is slurm or none");
  return ok();
}

void print_parts(const ClusterJob& job, const Plan& plan) {
  constexpr std::size_t kMost = 40;
  const std::vector<PartPlaces> places = places_of(plan, job.cuts, 0, job.parts());
  std::vector<Row> rows;
  for (std::size_t part = 0; part < job.parts() && part < kMost; ++part) {
    const UnitRange range = job.range(part);
    std::uint64_t bytes = 0;
    for (std::size_t i = range.first; i < range.last; ++i)
      bytes += plan.units[i].rows * plan.steps[plan.units[i].step].expression->row_bytes();
    rows.push_back({std::to_string(part), std::to_string(range.last - range.first), human_bytes(bytes),
                    std::to_string(places[part].files.size()), human_bytes(places[part].hem_bytes),
                    fmt::format("{:.2f}", job.costs[part])});
  }
  std::fputs(render_table({{"part"},
                           {"units", Align::kRight},
                           {"reads", Align::kRight},
                           {"files", Align::kRight},
                           {"hems", Align::kRight},
                           {"cost", Align::kRight}},
                          rows)
                 .c_str(),
             stdout);
  if (job.parts() > kMost) fmt::print("and {} parts more\n", job.parts() - kMost);
}

// What would be submitted.
void print_engine(const ClusterJob& job) {
  if (job.options.engine == ClusterOptions::Engine::kNone) return say_by_hand(job, all_parts(job));
  const std::string program = this_program();
  fmt::print("\n{0}\n{1}\n\n{2}/part.sh:\n{3}\n{2}/seal.sh:\n{4}", shell_words(parts_command(job, all_parts(job))),
             shell_words(seal_command(job, "THE_ARRAY")), job.folder, part_script(job, program),
             seal_script(job, program));
}

// `folder`: of the job, within that of a matrix; empty: there is none.
Status submit(Context context, Job job, const std::string& folder, const po::variables_map& values) {
  using Strings = std::vector<std::string>;
  SubmitOptions options;
  if (job.cluster) options.cluster = *job.cluster;
  BOOST_OUTCOME_TRY(override_cluster(values, options.cluster));
  if (!folder.empty()) {
    std::string& all = options.cluster.folder;
    if (all.empty()) all = std::filesystem::path(job.file).replace_extension(".job").string();
    all += "/" + folder;
  }
  options.overwrite = values.count("overwrite") > 0;
  options.kernels = {value_or<Strings>(values, "kernel-dir", {}), value_or<std::string>(values, "isa", {})};
  BOOST_OUTCOME_TRY(const Planned planned, plan_job(std::move(context), std::move(job), values));
  Diagnostics errors;
  for (const Error& error : planned.context.check(planned.plan, options.overwrite)) errors.add(error);
  if (!errors.empty()) return errors.together();
  BOOST_OUTCOME_TRY(const ClusterJob made, make_job(planned.plan, options));
  if (values.count("dry-run")) {
    print_parts(made, planned.plan);
    print_engine(made);
    return ok();
  }
  BOOST_OUTCOME_TRY(create_job(made, planned.plan));
  say_note(fmt::format("made the job in {}; parts: {}", made.folder, made.parts()));
  return start_parts(made, all_parts(made));
}

// A matrix is a job for each of its sources: "3-Llama-8B", in the folder of all.
int submit_all(Loaded loaded, const po::variables_map& values) {
  int code = 0;
  for (std::size_t i = 0; i < loaded.batch.jobs.size(); ++i) {
    BatchJob& each = loaded.batch.jobs[i];
    std::string folder;
    if (loaded.batch.is_matrix) folder = fmt::format("{}-{}", i, std::filesystem::path(each.source).stem().string());
    const Status status = submit(loaded.context, std::move(each.job), folder, values);
    const int one = status ? 0 : fail(status.error());
    if (code == 0) code = one;
  }
  return code;
}

int submit_verb(const Parsed& parsed) {
  auto loaded = load_from(parsed.values);
  return loaded ? submit_all(std::move(loaded).value(), parsed.values) : fail(loaded.error());
}

}  // namespace

const Verb kSubmitVerb{"submit", "bring a pipeline file to a cluster, in parts", command, submit_verb};

}  // namespace ggufmill
