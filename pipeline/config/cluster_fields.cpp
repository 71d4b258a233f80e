// The `cluster:` block of a pipeline file.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/config/job.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == text.npos;
}

// Options of sbatch that say where and when a job runs, and who is notified about it. All others are refused, and so
// are abbreviations: some choose what runs, as which user, or in which environment, and with others submit would lose
// track of its jobs.
constexpr std::string_view kPlacing[] = {"account",
                                         "acctg-freq",
                                         "batch",
                                         "begin",
                                         "cluster-constraint",
                                         "comment",
                                         "constraint",
                                         "contiguous",
                                         "core-spec",
                                         "cores-per-socket",
                                         "cpu-freq",
                                         "cpus-per-gpu",
                                         "cpus-per-task",
                                         "deadline",
                                         "delay-boot",
                                         "distribution",
                                         "exclude",
                                         "exclusive",
                                         "extra-node-info",
                                         "gpu-bind",
                                         "gpu-freq",
                                         "gpus",
                                         "gpus-per-node",
                                         "gpus-per-socket",
                                         "gpus-per-task",
                                         "gres",
                                         "gres-flags",
                                         "hint",
                                         "hold",
                                         "licenses",
                                         "mail-type",
                                         "mail-user",
                                         "mcs-label",
                                         "mem",
                                         "mem-bind",
                                         "mem-per-cpu",
                                         "mem-per-gpu",
                                         "mincpus",
                                         "network",
                                         "nice",
                                         "nodelist",
                                         "ntasks-per-core",
                                         "ntasks-per-node",
                                         "ntasks-per-socket",
                                         "overcommit",
                                         "oversubscribe",
                                         "partition",
                                         "power",
                                         "prefer",
                                         "priority",
                                         "profile",
                                         "qos",
                                         "reservation",
                                         "segment",
                                         "sockets-per-node",
                                         "spread-job",
                                         "switches",
                                         "thread-spec",
                                         "threads-per-core",
                                         "time",
                                         "time-min",
                                         "tmp",
                                         "tres-bind",
                                         "tres-per-task",
                                         "use-min-nodes",
                                         "wckey"};

// Returns the form of a value that a function like wrong_engine_argument() checks.
Form<std::string> engine_text(std::string (*wrong)(std::string_view)) {
  return text().checked([wrong](const ConfigNode& node) { return wrong(node.scalar); });
}

}  // namespace

std::string wrong_engine_argument(std::string_view text) {
  if (text.empty()) return "it is empty";
  return printable(text) == text ? "" : "it contains unprintable characters";
}

// Accepts the formats of sbatch: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S.
std::string wrong_engine_time(std::string_view text) {
  const std::size_t dash = text.find('-');
  bool is_right = dash == text.npos || is_number(text.substr(0, dash));
  if (dash != text.npos) text.remove_prefix(dash + 1);
  std::size_t numbers = 0;
  for (bool more = true; more; ++numbers) {
    const std::size_t colon = text.find(':');
    is_right = is_right && is_number(text.substr(0, colon));
    more = colon != text.npos;
    if (more) text.remove_prefix(colon + 1);
  }
  if (is_right && numbers <= 3) return "";
  return "a time limit is minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, or "
         "days-hours:minutes:seconds";
}

std::string wrong_engine_option(std::string_view text) {
  if (std::string wrong = wrong_engine_argument(text); !wrong.empty()) return wrong;
  if (!text.starts_with("--")) return "an option must begin with --, with its value after =";
  const std::string_view option = text.substr(0, text.find('='));
  if (std::ranges::find(kPlacing, option.substr(2)) != std::end(kPlacing)) return "";
  return fmt::format("{} is not an option for where and when a part runs; submit passes no other on to sbatch", option);
}

Form<ClusterOptions> cluster_form() {
  using Options = ClusterOptions;
  constexpr double kMax = 1e6;
  return map_of<Options>({
      field("engine", &Options::engine, enumeration<Options::Engine>(kClusterEngines),
            "slurm, or none: create only the job folder; its parts are started by other means.")
          .example("slurm"),
      field("folder", &Options::folder, path(),
            "Job folder, on a file system shared by all nodes. Defaults to the pipeline file's name with .job in place "
            "of .yaml.")
          .example("/shared/jobs/llama"),
      field("parts", &Options::parts,
            "Number of parts that the work is divided into, in total for all sources of a matrix. Defaults to one for "
            "every 16 GiB to read.")
          .example("32")
          .at_least(1)
          .at_most(Options::kMaxParts),
      field("partition", &Options::partition, engine_text(wrong_engine_argument),
            "Slurm partition in which the parts run.")
          .example("batch"),
      field("account", &Options::account, engine_text(wrong_engine_argument),
            "Slurm account that the parts are charged to.")
          .example("models"),
      field(
          "time", &Options::time, engine_text(wrong_engine_time),
          "Time limit of a part, in the format of sbatch. A part that reaches its limit is requeued and resumes where "
          "it stopped.")
          .example("'2:00:00'"),
      field("cpus", &Options::cpus, "CPUs per part, which is also its number of threads.")
          .example("16")
          .at_least(1)
          .at_most(Limits::kMaxThreads),
      field("memory", &Options::memory, bytes().at_least(64 << 20), "Memory per part.").example("8GiB"),
      field("max_parallel", &Options::max_parallel, "Maximum number of parts that run at the same time.")
          .example("20")
          .at_least(1)
          .at_most(kMax),
      field("constraint", &Options::constraint, engine_text(wrong_engine_argument),
            "Features that a node must have (sbatch --constraint).")
          .example("avx512"),
      field("options", &Options::options,
            list_of(engine_text(wrong_engine_option).doc("One option.").example("--nice=100")),
            "Additional sbatch options that say where and when a part runs, and who is notified about it.")
          .example("[--nice=100, --qos=low]"),
  });
}

}  // namespace ggufmill
