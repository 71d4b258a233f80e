#pragma once
// From a pipeline file to a Job: parsed, linted, and made by what the registry offers.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/registry.h"
#include "pipeline/plan/job.h"

namespace ggufmill {

struct JobOptions {
  std::vector<std::string> set;         // "outputs.0.gguf=out/a.gguf": path=YAML value
  std::vector<std::string> parameters;  // "NAME=value": over the environment and the default of a declared parameter
};

// The jobs of a pipeline file: one for each source of its `matrix`, else one.
struct BatchJob {
  std::string source;  // the path of what it reads, for messages
  Job job;
};
struct Batch {
  std::string file;
  bool is_matrix = false;
  std::vector<BatchJob> jobs;  // at least one
  ReportRequest report;        // of all of them together: paths without {name}; likewise only of a matrix
};

// Parses, lints and makes, in this order: YAML, --set, parameters, matrix, lint, make() of source, stages and sinks.
// All errors are added to `errors`; nothing comes back when there are any. Each is made when its own part of the file
// is right, so that what it finds is told with the rest. Opens nothing but the file and what the stages' make() opens;
// looks which files the patterns of a matrix name.
std::optional<Batch> load_batch(const std::string& path, const Registry& registry, const JobOptions& options,
                                Diagnostics& errors);
// The same for a text; `name` stands for the path in messages.
std::optional<Batch> parse_batch(std::string_view text, const std::string& name, const Registry& registry,
                                 const JobOptions& options, Diagnostics& errors);

// Of a file without a matrix, which is an error here.
std::optional<Job> load_job(const std::string& path, const Registry& registry, const JobOptions& options,
                            Diagnostics& errors);
std::optional<Job> parse_job(std::string_view text, const std::string& name, const Registry& registry,
                             const JobOptions& options, Diagnostics& errors);

// What limits.threads and --threads say: 0 for `auto`.
unsigned threads_of(const ConfigNode& node);  // which has passed the lint
Result<unsigned> parse_threads(const std::string& text);

// The field table of a whole pipeline file, made of the registry's; what the lint, schema and reference page come from.
FieldSpec job_fields(const Registry& registry);

}  // namespace ggufmill
