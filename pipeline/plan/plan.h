#pragma once
// The Plan: everything about a job but the weights. A pure function of the headers and the job; all that check, plan,
// run, reports and parts on other machines need to know, with a written form (written.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/core/stage.h"
#include "pipeline/core/type_module.h"
#include "pipeline/io/output_store.h"
#include "pipeline/plan/job.h"

namespace ggufmill {

// What is known of the model that a plan reads.
struct PlannedSource {
  std::string name, architecture;  // as its metadata says; may be empty
  std::vector<SourceRef> files;    // of the model, in their order
  std::uint64_t tensors = 0, weights = 0, bytes = 0;
};

struct PlannedTensor {
  std::string name;
  Shape shape;
  const TypeInfo* source_type = nullptr;
  const TypeInfo* type = nullptr;
  std::uint64_t source_bytes = 0;
  std::uint64_t bytes = 0;
  std::string reason;  // which rule decided the type
  bool importance = false;
  const TypeInfo* fallback_from = nullptr;  // the type that was wanted, where rows are no whole blocks of it

  bool operator==(const PlannedTensor&) const = default;
};

// One output of the pipeline file: its tensors as its stages leave them, and the files it is laid out as.
struct PlannedOutput {
  Origin origin;       // of the output in the pipeline file
  std::string recipe;  // what quantized it; empty: nothing
  std::vector<PlannedTensor> tensors;
  std::vector<OutputFile> files;
  std::vector<Error> problems;  // what stands in the way of a run, which refuses such a plan
};

// Where encoded bytes go.
struct Place {
  std::uint32_t output = 0;  // index into Plan::outputs
  std::uint32_t file = 0;    // index into PlannedOutput::files
  std::size_t tensor = 0;    // index into PlannedOutput::tensors
  std::uint64_t offset = 0;  // in the file

  bool operator==(const Place&) const = default;
};

// That an encoding is there already, in an earlier output: the step's expression is an extent of that.
struct Taken {
  std::string made_of;     // identity_of() the step and encoding that it stands for
  std::uint64_t xxh3 = 0;  // of all its bytes, as the earlier output's manifest says

  bool operator==(const Taken&) const = default;
};

// One form of a step's values. Made once, however many places it goes to.
struct Encoding {
  const TypeInfo* type = nullptr;
  std::shared_ptr<const Importance> importance;  // null: none; used where the type's kernel accepts it
  std::vector<Place> places;                     // none in a measurement
  bool big_endian = false;                       // its words are swapped once it is made
  std::optional<Taken> taken = {};               // none: it is made
};

// All that is done with the values of one expression: they are read and decoded once, for every encoding.
struct Step {
  std::string name;  // of the tensor in the source, or in the first output that has it
  ExpressionRef expression;
  std::vector<Encoding> encodings;               // none in a comparison
  ExpressionRef compared;                        // of the same shape: its difference is measured; null: no comparison
  std::shared_ptr<const Importance> importance;  // of a comparison
};

// A run of whole rows of a step: what progress, resuming and parts are counted in. The same on every machine.
struct Unit {
  std::size_t step = 0;
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;

  bool operator==(const Unit&) const = default;
};

struct Plan {
  std::string file;  // the pipeline file's path, for messages
  PlannedSource source;
  std::vector<SourceRef> sources;  // everything that a run reads: the model, importance
  // Of each source inode_time() when Context::plan() made the plan; 0: unknown. Not in the written form.
  std::vector<std::int64_t> inode_times;
  // What the job was made of beside: recipes, the pipeline file. Like the sources none of these is ever written.
  std::vector<std::string> other_inputs;
  std::vector<PlannedOutput> outputs;
  std::vector<Step> steps;          // in the order of the sources' bytes
  std::vector<Unit> units;          // in the order of the steps and their rows
  std::vector<TypeModule> modules;  // of the foreign types that decide bytes: see foreign_types_of()
  Limits limits;
  ReportRequest report;  // with its paths; none: no report is wanted
  Nonfinite nonfinite = Nonfinite::kError;
  bool manifest = false;              // as Job::manifest
  bool verify = false;                // as Job::verify
  std::string trace;                  // where the trace of a run goes; empty: none is wanted
  std::vector<std::string> warnings;  // for the user, each once
  // The smallest limits.memory the engine accepts: the costliest single row of any step, in bytes.
  std::uint64_t least_memory = 0;

  // Where the manifest of an output goes, and its sums for sha256sum: beside its first file.
  std::string manifest_path(std::size_t output) const { return outputs[output].files.front().path + ".manifest.json"; }
  std::string sums_path(std::size_t output) const { return outputs[output].files.front().path + ".sha256"; }
  bool is_reported() const { return !report.json.empty() || !report.html.empty(); }
  std::uint64_t bytes_read() const;
  std::uint64_t bytes_written() const;
  std::vector<std::string> input_paths() const;  // the sources', and the other inputs
};

// The foreign types that a kernel decodes or encodes in a run of the plan, each once, by name. Bytes that are copied
// need no kernel.
std::vector<const TypeInfo*> foreign_types_of(const Plan& plan);
// The modules of those that decide the bytes of one output.
std::vector<TypeModule> modules_of(const Plan& plan, std::size_t output);

// The files of all outputs, in order. The plan outlives them.
std::vector<StoredFile> stored_files(const Plan& plan);

// Runs the header plane: opens the source, applies the stages, lays out the outputs. Adds every error to `errors`;
// exit code 4 for more than kMostPlanBytes.
std::optional<Plan> make_plan(const Job& job, Diagnostics& errors);

// Two tensors of the same shape; `a` may have importance.
struct TensorPair {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
};
// A step for each pair, in their order: what `b` lost against `a`. Pairs without elements have none. No outputs.
Plan make_comparison(const Model& a, const Model& b, const std::vector<TensorPair>& pairs, const Limits& limits);

// Files that the job's parts read beside the source, and the pipeline file.
std::vector<std::string> other_inputs(const Job& job);

// What the outputs of a job are made of: the source's model, as the stages that all outputs share leave it.
Result<Model> shared_model(const Job& job);

// A tensor, and the types in which its error is measured.
struct Measured {
  const Tensor* tensor = nullptr;
  std::vector<const TypeInfo*> types;
};
// A step for each, in their order, with an encoding without a place for each type. No outputs.
Plan make_measurement(const Model& model, const std::vector<Measured>& tensors, const Limits& limits);

// A step for each tensor, in their order, that only looks for what is not finite. Those without elements have none.
Plan make_check(const Model& model, const Limits& limits);

// Expression bytes of a unit; a longer row is a unit of its own.
inline constexpr std::uint64_t kUnitBytes = 64 << 20;
// Of all expressions: what claims to be more is no model, and its units alone would fill the memory.
inline constexpr std::uint64_t kMostPlanBytes = std::uint64_t{1} << 48;
// What follows from the steps: units, sources and the least memory. For whoever makes the steps of a plan.
void finish_plan(Plan& plan);
// The path of the first of the plan's sources that was among `sources`, of the same path, size, and time, with another
// inode time in `inode_times`. Empty: none, as far as is known.
std::string touched_source(const Plan& plan, std::span<const SourceFile> sources,
                           std::span<const std::int64_t> inode_times);

}  // namespace ggufmill
