#pragma once
// Turns a pipeline file into a Job: parses and lints it, and creates the parts that the registry provides.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/bound_fields.h"
#include "pipeline/config/registry.h"
#include "pipeline/core/job.h"

namespace ggufmill {

struct JobOptions {
  std::vector<std::string> set;  // "outputs.0.gguf=out/a.gguf": path=YAML value
  std::vector<std::string>
      parameters;  // "NAME=value": overrides the environment and the default of a declared parameter
};

// The jobs of a pipeline file: one for each source of its `matrix`, or a single job without one.
struct BatchJob {
  std::string source;  // path of its input, for messages
  Job job;
};
struct Batch {
  std::string file;
  bool is_matrix = false;
  std::vector<BatchJob> jobs;  // at least one
  ReportRequest report;        // report on all jobs: paths without {name}; only with a matrix
};

// Processes a file in this order: YAML, --set, parameters, matrix, lint, make() of source, stages and sinks. Adds all
// errors to `errors` and returns nullopt if there are any. Each part is created as soon as its own section of the file
// is valid, so that its errors are reported together with the others. Opens only the file itself and the files that
// make() of the stages opens; lists the files that match the patterns of a matrix.
std::optional<Batch> load_batch(const std::string& path, const Registry& registry, const JobOptions& options,
                                Diagnostics& errors);
// Does the same for the text of a pipeline file; `name` replaces the path in messages.
std::optional<Batch> parse_batch(std::string_view text, const std::string& name, const Registry& registry,
                                 const JobOptions& options, Diagnostics& errors);

// The same for a file without a matrix; a matrix is an error here.
std::optional<Job> load_job(const std::string& path, const Registry& registry, const JobOptions& options,
                            Diagnostics& errors);
std::optional<Job> parse_job(std::string_view text, const std::string& name, const Registry& registry,
                             const JobOptions& options, Diagnostics& errors);

// Options that are also options of the command line, and their values: the number of threads, 0 for `auto`, and the I/O
// mode.
Form<unsigned> threads_form();
Form<IoMode> io_form();
// Return the problem with a text that becomes an argument of the command of a cluster's engine, with a time limit, and
// with one of the additional options; empty if there is none. They apply to pipeline files and to the records of jobs.
std::string wrong_engine_argument(std::string_view text);
std::string wrong_engine_time(std::string_view text);
std::string wrong_engine_option(std::string_view text);
// The options of `cluster:`.
Form<ClusterOptions> cluster_form();
// Options of a job and of an output that no part of the registry provides.
const Fields<Job>& job_options();
const Fields<JobOutput>& output_options();
// Returns true for the few of them that decide bytes of outputs. The others are about how a job runs, and what it does
// besides: limits, reports, steps.
bool decides_bytes(std::string_view option);
// Fields of the sections, including those of wings.
Fields<JobSections> job_section_fields();
Fields<OutputSections> output_section_fields();

// Field table of a complete pipeline file, built from those of the registry. The lint, schema and reference page use
// it.
FieldSpec job_fields(const Registry& registry);

}  // namespace ggufmill
