#pragma once
// The Plan: everything about a job but the weights. A pure function of the headers and the job.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/core/stage.h"
#include "pipeline/plan/job.h"

namespace ggufmill {

// One output of the pipeline file: the model as its stages leave it, and the files it is laid out as.
struct PlannedOutput {
  Model model;
  std::vector<OutputFile> files;
};

// Where one source tensor goes in one output.
struct Target {
  std::uint32_t output = 0;  // index into Plan::outputs
  std::uint32_t file = 0;    // index into PlannedOutput::files
  std::size_t tensor = 0;    // index into PlannedOutput::model.tensors
  std::uint64_t offset = 0;  // in the file
};

// All that is done with one source tensor: read once, decode at most once, fed to every target.
struct Route {
  TensorSource source;
  Shape shape;
  std::string name;             // in the source
  std::vector<Target> targets;  // at least one
};

struct Plan {
  std::string file;  // the pipeline file's path, for messages
  Model source;
  // What else the job reads and was made of: importance, recipes, the pipeline file. Like the source's files none of
  // these is ever written.
  std::vector<std::string> other_inputs;
  std::vector<std::string> input_paths() const;  // the source's, and these
  std::vector<PlannedOutput> outputs;
  std::vector<Route> routes;  // in the order of the source files' bytes
  Limits limits;
  ReportRequest report;               // with its paths; none: no report is wanted
  std::string trace;                  // where the trace of a run goes; empty: none is wanted
  std::vector<std::string> warnings;  // of source and outputs, each once
  bool is_reported() const { return !report.json.empty() || !report.html.empty(); }

  // The smallest limits.memory the engine accepts: the costliest single row of any route, in bytes.
  std::uint64_t least_memory = 0;
  std::uint64_t bytes_read() const;
  std::uint64_t bytes_written() const;
};

// Runs the header plane: opens the source, applies the stages, lays out the outputs. Adds every problem to `errors`.
std::optional<Plan> make_plan(const Job& job, Diagnostics& errors);

// Some whole rows of a route (or, where nothing is converted, some bytes): the unit of the data plane.
struct Slab {
  std::size_t route = 0;
  std::uint64_t first_row = 0;  // for a route that only copies: 0, and `first_byte` / `source_bytes` count
  std::uint64_t rows = 0;
  std::uint64_t first_byte = 0;    // in the source tensor
  std::uint64_t source_bytes = 0;  // to read
  std::uint64_t cost = 0;          // bytes of budget for the whole way: source buffer and all targets' buffers
};

// Cuts a plan into slabs of at most `slab_bytes` of cost where a row allows it (a row is never cut unless it is only
// copied). Where importance is used, no slab crosses a matrix (dims[0] * dims[1]) of a tensor, so that one importance
// row serves a slab. In order of the routes. `slab_bytes` at least plan.least_memory. All slabs at once;
// pipeline/plan/slabs.h hands them out one by one.
std::vector<Slab> cut_slabs(const Plan& plan, std::uint64_t slab_bytes);

}  // namespace ggufmill
