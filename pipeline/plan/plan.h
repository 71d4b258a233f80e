#pragma once
// The Plan: everything about a job except the weights. It depends only on the headers and the job, and contains all
// that checks, runs, reports and parts on other machines need to know. It can be serialized (written.h).

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/job.h"
#include "pipeline/core/lifetime.h"
#include "pipeline/core/model.h"
#include "pipeline/core/stage.h"
#include "pipeline/core/type_module.h"
#include "pipeline/io/output_store.h"

namespace ggufmill {

// Returns the bytes of memory that a run with these limits may use: those given, or else the default, but at most a
// quarter of the memory available to this process.
std::uint64_t memory_budget(const Limits& limits);

// The properties of the model that a plan reads.
struct PlannedSource {
  std::string name, architecture;  // from its metadata; may be empty
  std::vector<SourceRef> files;    // of the model, in order
  std::uint64_t tensors = 0, weights = 0, bytes = 0;
  std::vector<ModelPart> parts = {};  // of the checkpoint; empty if it is none. Not serialized
  // Its use, for its description. Not serialized.
  enum class Use : std::uint8_t { kText, kEmbedding, kAdapter } use = Use::kText;
};

struct PlannedTensor {
  std::string name;
  Shape shape;
  const TypeInfo* source_type = nullptr;
  const TypeInfo* type = nullptr;
  std::uint64_t source_bytes = 0;
  std::uint64_t bytes = 0;
  std::string reason;  // the rule that decided the type
  bool importance = false;
  const TypeInfo* fallback_from = nullptr;  // the wanted type, if rows are not whole blocks of it

  bool operator==(const PlannedTensor&) const = default;
};

// One output of the pipeline file: its tensors after all stages, and its files.
struct PlannedOutput {
  Origin origin;                  // position of the output in the pipeline file
  std::string recipe;             // recipe that quantized it; empty: none
  std::string choice;             // what its choice of types minimized and gained; empty: types were not chosen
  std::optional<ModelPart> part;  // as JobOutput::part. Not serialized
  std::vector<PlannedTensor> tensors;
  std::vector<OutputFile> files;
  std::vector<Error> problems;  // errors that prevent a run of this plan
};

// A destination of encoded bytes.
struct Place {
  std::uint32_t output = 0;  // index into Plan::outputs
  std::uint32_t file = 0;    // index into PlannedOutput::files
  std::size_t tensor = 0;    // index into PlannedOutput::tensors
  std::uint64_t offset = 0;  // in the file

  auto operator<=>(const Place&) const = default;
};

// Marks an encoding whose bytes exist in an earlier output; the step's expression is an extent of that output.
struct Taken {
  std::string made_of;     // identity_of() the step and encoding that it replaces
  std::uint64_t xxh3 = 0;  // of all its bytes, from the earlier output's manifest

  bool operator==(const Taken&) const = default;
};

// One encoding of a step's values. Made once, however many places it is written to.
struct Encoding {
  const TypeInfo* type = nullptr;
  std::shared_ptr<const Importance> importance;       // null: none; used if the type's kernel accepts it
  std::vector<Place> places;                          // empty in a measurement
  bool big_endian = false;                            // true if its words are byte-swapped after encoding
  std::optional<Taken> taken = {};                    // none: the encoding is made
  Encoder encoder = {};                               // as from encoder_for()
  std::shared_ptr<const Covariance> covariance = {};  // set if the encoder is `covariance`
};

// All work on the values of one expression, which are read and decoded once for all encodings.
struct Step {
  std::string name;  // name of the tensor in the source or, failing that, in the first output with it
  ExpressionRef expression;
  std::vector<Encoding> encodings;               // empty in a comparison
  ExpressionRef compared;                        // same shape; the difference is measured; null: no comparison
  std::shared_ptr<const Importance> importance;  // only in a comparison
  bool is_sample = false;                        // the rows of the expression are some of the tensor's
};

// A range of whole rows of a step: the unit of progress, resuming and parts. Units do not depend on the machine.
struct Unit {
  std::size_t step = 0;
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;

  bool operator==(const Unit&) const = default;
};

struct Plan {
  std::string file;  // path of the pipeline file, for messages
  PlannedSource source;
  std::vector<SourceRef> sources;  // all sources that a run reads: model and importance
  // The inode_time() of each source when Context::plan() made the plan; 0: unknown. Not serialized.
  std::vector<std::int64_t> inode_times;
  // Other files that the job was made from: recipes, the pipeline file, and whatever else was read to plan it. Like the
  // sources, they are never written.
  std::vector<std::string> other_inputs;
  std::vector<PlannedOutput> outputs;
  std::vector<Step> steps;          // in the order of the sources' bytes
  std::vector<Unit> units;          // ordered by step, then row
  std::vector<TypeModule> modules;  // of what affects bytes and is foreign: see foreign_uses_of()
  Limits limits;
  ReportRequest report;  // with its paths; empty paths: no report is written
  Nonfinite nonfinite = Nonfinite::kError;
  bool manifest = false;              // as Job::manifest
  bool verify = false;                // as Job::verify
  std::string trace;                  // path of the run's trace; empty: none
  std::vector<std::string> warnings;  // for the user, without duplicates
  // The smallest limits.memory that the engine accepts, in bytes: the cost of the costliest single row of any step.
  std::uint64_t least_memory = 0;

  // Return the paths of an output's manifest and of its checksum list for sha256sum, which are next to its first file.
  std::string manifest_path(std::size_t output) const { return outputs[output].files.front().path + ".manifest.json"; }
  std::string sums_path(std::size_t output) const { return outputs[output].files.front().path + ".sha256"; }
  bool is_reported() const { return !report.json.empty() || !report.html.empty(); }
  std::uint64_t bytes_read() const;
  std::uint64_t bytes_written() const;
  std::vector<std::string> input_paths() const;  // of the sources and the other inputs
};

// Returns the foreign types and encoders that a run of the plan uses, without duplicates, sorted by name. Bytes that
// are copied need no kernel.
std::vector<ForeignUse> foreign_uses_of(const Plan& plan);
// Returns the modules of the foreign types and encoders that affect the bytes of one output.
std::vector<TypeModule> modules_of(const Plan& plan, std::size_t output);

// Returns the files of all outputs, in order. The plan must outlive them.
std::vector<StoredFile> stored_files(GGUFMILL_OUTLIVES_RESULT const Plan& plan);
// Returns what a run of the units [first, last) writes to these files, in the order of the units.
std::vector<PlannedWrite> planned_writes(const Plan& plan, std::size_t first, std::size_t last);
// Returns the options for the store of these files, with the part of the memory budget that the store may use.
StoreOptions store_options(const Plan& plan);

// Plans a job from headers only: opens the source, applies the stages and lays out the outputs. Adds every error to
// `errors`; exit code 4 if the tensors have more than kMaxPlanBytes.
std::optional<Plan> make_plan(const Job& job, Diagnostics& errors);

// A pair of tensors of the same shape; `a` may have importance.
struct TensorPair {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
};
// Makes a plan with one step per pair, in order, that measures the error of `b` relative to `a`. Pairs without elements
// get no step. The plan has no outputs.
Plan make_comparison(const Model& a, const Model& b, const std::vector<TensorPair>& pairs, const Limits& limits);

// Returns the files that the job's stages and sinks read in addition to the source, and the pipeline file.
std::vector<std::string> other_inputs(const Job& job);

// Returns the model from which outputs with this request are made: that of the source after the stages that all outputs
// share.
Result<Model> shared_model(const Job& job, const PartRequest& request = {});

// A tensor, and the types whose errors are measured for it.
struct Measured {
  const Tensor* tensor = nullptr;
  std::vector<const TypeInfo*> types;
  std::vector<Encoder> encoders;  // of each type, as asked for
  bool is_sample = false;         // `tensor` has some of the rows
};
// Makes a plan with one step per tensor, in order, each with one encoding per type and no places. The plan has no
// outputs.
Plan make_measurement(const Model& model, const std::vector<Measured>& tensors, const Limits& limits);

// Makes a plan with one step per tensor, in order, that only checks for values that are not finite. Tensors without
// elements get no step.
Plan make_check(const Model& model, const Limits& limits);

// Maximum expression bytes of a unit; a longer row is a unit of its own.
inline constexpr std::uint64_t kUnitBytes = 64 << 20;
// Limit for all expressions together. A larger claim cannot be a real model, and its units alone would exhaust the
// memory.
inline constexpr std::uint64_t kMaxPlanBytes = std::uint64_t{1} << 48;
// Computes what follows from the steps: units, sources and the least memory. Must be called after a plan's steps are
// set.
void finish_plan(Plan& plan);
// Returns the path of the first of the plan's sources that is also in `sources`, with the same path, size and time but
// a different inode time in `inode_times`. Empty: none is known.
std::string touched_source(const Plan& plan, std::span<const SourceFile> sources,
                           std::span<const std::int64_t> inode_times);

}  // namespace ggufmill
