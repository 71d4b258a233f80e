#include "pipeline/config/cluster_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Returns the problem with a value, which becomes one argument of the engine's command; empty if there is none.
std::string wrong_word(const ConfigNode& node) {
  if (node.scalar.empty()) return "it is empty";
  return printable(node.scalar) == node.scalar ? "" : "it contains unprintable characters";
}

FieldSpec word(std::string name, std::string doc, std::string example) {
  return {.name = std::move(name), .doc = std::move(doc), .example = std::move(example), .check = wrong_word};
}

FieldSpec number(std::string name, std::string doc, std::string example, double most) {
  return {.name = std::move(name),
          .kind = FieldKind::kInteger,
          .doc = std::move(doc),
          .example = std::move(example),
          .minimum = 1,
          .maximum = most};
}

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

FieldSpec options_field() {
  // Options that submit sets itself, and options that would make it lose track of its jobs.
  static constexpr std::string_view kOwn[] = {"--array",    "--dependency", "--output",   "--error", "--open-mode",
                                              "--parsable", "--wrap",       "--job-name", "--chdir", "--signal",
                                              "--requeue",  "--no-requeue", "--wait",     "--export"};
  const FieldSpec option{
      .doc = "One option.", .example = "--nice=100", .check = [](const ConfigNode& node) -> std::string {
        if (const std::string wrong = wrong_word(node); !wrong.empty()) return wrong;
        if (!node.scalar.starts_with("--")) return "an option must begin with --, with its value after =";
        const std::string_view name = std::string_view(node.scalar).substr(0, node.scalar.find('='));
        return std::ranges::find(kOwn, name) == std::end(kOwn) ? "" : fmt::format("submit sets {} itself", name);
      }};
  return {.name = "options",
          .kind = FieldKind::kList,
          .doc = "Additional sbatch options.",
          .example = "[--nice=100, --qos=low]",
          .item = {option}};
}

std::string text_of(const ConfigNode& node, std::string_view name) {
  const ConfigNode* value = node.find(name);
  return value ? value->scalar : "";
}

unsigned number_of(const ConfigNode& node, std::string_view name) {
  const ConfigNode* value = node.find(name);
  if (!value) return 0;
  const Result<std::int64_t> number = to_integer(*value);
  return number ? static_cast<unsigned>(number.value()) : 0;
}

}  // namespace

FieldSpec cluster_field() {
  constexpr double kMost = 1e6;
  return {.name = "cluster",
          .kind = FieldKind::kMap,
          .doc = "How `ggufmill submit` runs the job on a cluster; see pipeline/cluster/README.md.",
          .example = "{partition: batch, parts: 32, cpus: 16, memory: 8GiB, time: '2:00:00'}",
          .fields = {{.name = "engine",
                      .kind = FieldKind::kEnum,
                      .doc = "slurm, or none: create only the job folder; its parts are started by other means.",
                      .default_text = "slurm",
                      .example = "slurm",
                      .choices = {"slurm", "none"}},
                     {.name = "folder",
                      .kind = FieldKind::kPath,
                      .doc = "Job folder, on a file system shared by all nodes. Defaults to the pipeline file's name "
                             "with .job in place of .yaml.",
                      .example = "/shared/jobs/llama"},
                     number("parts",
                            "Number of parts that the work is divided into, in total for all sources of a matrix. "
                            "Defaults to one for every 16 GiB to read.",
                            "32", ClusterOptions::kMostParts),
                     word("partition", "Slurm partition in which the parts run.", "batch"),
                     word("account", "Slurm account that the parts are charged to.", "models"),
                     {.name = "time",
                      .doc = "Time limit of a part, in the format of sbatch. A part that reaches its limit is requeued "
                             "and resumes where it stopped.",
                      .example = "'2:00:00'",
                      .check = wrong_time},
                     number("cpus", "CPUs per part, which is also its number of threads.", "16", Limits::kMostThreads),
                     {.name = "memory",
                      .kind = FieldKind::kBytes,
                      .doc = "Memory per part.",
                      .example = "8GiB",
                      .minimum = 64 << 20},
                     number("max_parallel", "Maximum number of parts that run at the same time.", "20", kMost),
                     word("constraint", "Features that a node must have (sbatch --constraint).", "avx512"),
                     options_field()}};
}

ClusterOptions cluster_options(const ConfigNode& node) {
  ClusterOptions options;
  if (text_of(node, "engine") == "none") options.engine = ClusterOptions::Engine::kNone;
  options.folder = text_of(node, "folder");
  options.parts = number_of(node, "parts");
  options.partition = text_of(node, "partition");
  options.account = text_of(node, "account");
  options.time = text_of(node, "time");
  options.constraint = text_of(node, "constraint");
  options.cpus = number_of(node, "cpus");
  options.max_parallel = number_of(node, "max_parallel");
  if (const ConfigNode* memory = node.find("memory"))
    if (const Result<std::uint64_t> bytes = to_bytes(*memory)) options.memory = bytes.value();
  if (const ConfigNode* list = node.find("options"))
    for (const ConfigNode& option : list->items) options.options.push_back(option.scalar);
  return options;
}

}  // namespace ggufmill
