// The `cluster:` block of a pipeline file.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/config/job.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Returns the problem with a value, which becomes one argument of the engine's command; empty if there is none.
std::string wrong_argument(const ConfigNode& node) {
  if (node.scalar.empty()) return "it is empty";
  return printable(node.scalar) == node.scalar ? "" : "it contains unprintable characters";
}

// Returns the form of a value that becomes one argument of the engine's command.
Form<std::string> argument() { return text().checked(wrong_argument); }

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == text.npos;
}

// Accepts the formats of sbatch: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S.
std::string wrong_time(const ConfigNode& node) {
  std::string_view text = node.scalar;
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

// Returns the problem with one of the additional options.
std::string wrong_option(const ConfigNode& node) {
  // Options that submit sets itself, and options that would make it lose track of its jobs.
  static constexpr std::string_view kOwn[] = {"--array",    "--dependency", "--output",   "--error", "--open-mode",
                                              "--parsable", "--wrap",       "--job-name", "--chdir", "--signal",
                                              "--requeue",  "--no-requeue", "--wait",     "--export"};
  if (std::string wrong = wrong_argument(node); !wrong.empty()) return wrong;
  if (!node.scalar.starts_with("--")) return "an option must begin with --, with its value after =";
  const std::string_view name = std::string_view(node.scalar).substr(0, node.scalar.find('='));
  return std::ranges::find(kOwn, name) == std::end(kOwn) ? "" : fmt::format("submit sets {} itself", name);
}

}  // namespace

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
      field("partition", &Options::partition, argument(), "Slurm partition in which the parts run.").example("batch"),
      field("account", &Options::account, argument(), "Slurm account that the parts are charged to.").example("models"),
      field(
          "time", &Options::time, text().checked(wrong_time),
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
      field("constraint", &Options::constraint, argument(), "Features that a node must have (sbatch --constraint).")
          .example("avx512"),
      field("options", &Options::options,
            list_of(text().checked(wrong_option).doc("One option.").example("--nice=100")),
            "Additional sbatch options.")
          .example("[--nice=100, --qos=low]"),
  });
}

}  // namespace ggufmill
