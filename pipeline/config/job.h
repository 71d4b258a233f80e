#pragma once
// A pipeline file, parsed, linted and bound to the registry: what plan/ works on.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/schema.h"
#include "pipeline/core/io_mode.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

struct Limits {
  std::uint64_t memory = 512ull << 20;  // bytes of slabs in flight
  unsigned threads = 0;                 // 0: as many as the machine gives this process
  unsigned nice = 0;                    // added to the niceness of the process
  std::optional<IoMode> io = {};        // none: by the size of the job
  bool memory_is_given = false;         // else a machine that has little may make `memory` less

  static constexpr unsigned kMostThreads = 1024;
  static constexpr unsigned kMostNice = 19;
};

// What the user wants to be told about a run.
struct ReportRequest {
  bool error = false;      // measure what every converted tensor lost
  std::string json, html;  // where to write it; empty: not in this form
};

struct JobOutput {
  const SinkSpec* sink = nullptr;
  ConfigNode sink_value;                             // of the sink's key
  std::vector<std::shared_ptr<const Stage>> stages;  // of this output alone
  Position position;
};

struct Job {
  std::string file;  // the pipeline file's path
  const SourceSpec* source = nullptr;
  ConfigNode source_value;
  std::vector<std::shared_ptr<const Stage>> stages;  // shared by all outputs
  std::vector<JobOutput> outputs;                    // at least one
  Limits limits;
  std::optional<ReportRequest> report;  // no paths: beside the first output
  std::string trace;                    // where the trace of a run goes; empty: none is wanted
  std::vector<std::string> inputs;  // files that the job was made of, beside those that its parts read: never written
  std::shared_ptr<const std::deque<ConfigText>> texts;  // what the nodes' positions point into
};

struct JobOptions {
  std::vector<std::string> set;         // "outputs.0.gguf=out/a.gguf": path=YAML value
  std::vector<std::string> parameters;  // "NAME=value": over the environment and the default of a declared parameter
};

// Parses, lints and binds, in this order: YAML, --set, parameters, lint, the stages' make(). All errors are added to
// `errors`; no Job when there are any. A stage is made when its own part of the file is right, so that what it finds is
// told with the rest. The Job points into `registry`, which outlives it. Opens nothing but the file and what the
// stages' make() opens.
std::optional<Job> load_job(const std::string& path, const Registry& registry, const JobOptions& options,
                            Diagnostics& errors);
// The same for a text; `name` stands for the path in messages.
std::optional<Job> parse_job(std::string_view text, const std::string& name, const Registry& registry,
                             const JobOptions& options, Diagnostics& errors);

// What limits.threads and --threads say: 0 for `auto`.
unsigned threads_of(const ConfigNode& node);  // which has passed the lint
Result<unsigned> parse_threads(const std::string& text);

// The field table of a whole pipeline file, made of the registry's; what the lint, schema and reference page come from.
FieldSpec job_fields(const Registry& registry);

}  // namespace ggufmill
