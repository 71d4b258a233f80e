// `ggufmill part`: runs one part of a cluster job.

#include <fmt/format.h>

#include <cstdlib>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec part_command() {
  CommandSpec spec;
  spec.usage = "ggufmill part --plan DIR/plan.json (--part K | --part-env NAME) [options]";
  spec.description =
      "Run part K of the cluster job in DIR, which `ggufmill submit` created; engines start the parts of a job with "
      "this command. Parts are numbered from 0. A part that is already done exits immediately; an interrupted one "
      "resumes. Threads and memory are those that Slurm allocates, or else those of the pipeline file. Exit code 75 "
      "means that trying again may help.";
  spec.examples =
      "  ggufmill part --plan llama.job/plan.json --part 3\n"
      "  seq 0 31 | parallel -S node1,node2 ggufmill part --plan $PWD/llama.job/plan.json --part {}";
  auto add = spec.options.add_options();
  add("plan", po::value<std::string>(), "plan of the job, or its folder");
  add("part", po::value<std::string>(), "number of the part");
  add("part-env", po::value<std::string>(), "environment variable with the number of the part: SLURM_ARRAY_TASK_ID");
  add("threads", po::value<std::string>(), "number of threads, or auto; overrides limits.threads");
  add("isa", po::value<std::string>(), "use only kernels for this ISA");
  add("quiet,q", "print no progress and no summary");
  return spec;
}

Result<std::size_t> which_part(const po::variables_map& values) {
  std::optional<std::string> text = text_of(values, "part");
  const std::optional<std::string> name = text_of(values, "part-env");
  if (text.has_value() == name.has_value())
    return usage_error("expected one of --part and --part-env", "give either --part K or --part-env NAME");
  if (name) {
    const char* value = std::getenv(name->c_str());
    if (!value) return usage_error(fmt::format("the environment variable {} is not set", *name), "give --part K");
    const auto part = parse_part(value);
    // Whatever the variable holds instead may be secret.
    if (!part)
      return usage_error(fmt::format("the environment variable {} does not contain the number of a part", *name),
                         "name the variable in which the engine counts, or give --part K");
    return part;
  }
  return parse_part(*text);
}

Result<PartOutcome> run(const po::variables_map& values) {
  BOOST_OUTCOME_TRY(const std::size_t part, which_part(values));
  BOOST_OUTCOME_TRY(const std::string folder, folder_of_plan(values));
  BOOST_OUTCOME_TRY(const OpenedArray opened, enter_array(folder, text_of(values, "isa").value_or("")));
  std::optional<unsigned> threads;
  if (values.count("threads")) {
    BOOST_OUTCOME_TRY(threads, parse_option("--threads", threads_form(), values["threads"].as<std::string>()));
  }
  PartOptions options;
  options.stop = catch_signals();
  ProgressMeter meter(values.count("quiet") > 0);
  auto outcome = run_part(opened, part, threads, options, [&](std::uint64_t done, std::uint64_t total) {
    meter.show(fmt::format("part {}", part), done, total);
  });
  meter.finish();
  if (!outcome || values.count("quiet")) return outcome;
  print_warnings(outcome.value().run.warnings);
  if (outcome.value().was_done)
    print_note(fmt::format("part {} was already done", part));
  else
    print_note(fmt::format("part {}: {} of work in {:.2f} s, {} of them by an earlier attempt", part,
                           counted(outcome.value().units, "unit"), outcome.value().run.seconds,
                           outcome.value().units_kept));
  return outcome;
}

int part_verb(const Parsed& parsed) {
  const auto outcome = run(parsed.values);
  return outcome ? 0 : fail(outcome.error());
}

}  // namespace

const Verb kPartVerb{"part", OperationGroup::kCluster, "Run one part of a cluster job", part_command, part_verb};

}  // namespace ggufmill
