#pragma once
// libggufmill: pipeline files and what they name, for other programs: plan, check, run and batches, measurements,
// comparisons, verification, the arguments of `quantize` and `convert`, rows in memory. Clusters and the smaller tools
// (split, merge, hash, edit, imatrix, name, render) are in the program alone.
//
//   auto context = ggufmill::Context::create();
//   auto job = context.value().load_job("job.yaml");
//   auto plan = context.value().plan(job.value());
//   ggufmill::RunOptions options;
//   options.progress = [](const ggufmill::Progress& now) { ... };
//   auto report = context.value().run(plan.value(), options);
//
// A Job can also be made without a pipeline file, of make_gguf_source(), make_quantize_stage(), make_gguf_sink() and
// their like: tests/consumers/embed does.
//
// Errors: every call gives a Result, its value or an Error, whose `also` has the others that the same call found.
// Nothing throws but std::bad_alloc, nothing is printed, nothing ends the program. Warnings are data of what is given.
//
// Ownership: what a Context gives points into it (types, kernels), so the Context outlives it; it may be moved. Strings
// and options are copied.
//
// Threads: a Context is immutable, and all its calls may be made from several threads at once. There may be several
// Contexts at once, each with modules and types of its own.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/batch.h"
#include "pipeline/api/convert_options.h"
#include "pipeline/api/probe.h"
#include "pipeline/api/quantize_options.h"
#include "pipeline/config/job.h"
#include "pipeline/core/error.h"
#include "pipeline/core/model.h"
#include "pipeline/graph/engine.h"
#include "pipeline/graph/rows_in_memory.h"
#include "pipeline/io/output_target.h"
#include "pipeline/journal/leftovers.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/report.h"
#include "stages/arrays/arrays.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/importance_stage.h"
#include "stages/metadata/metadata_stage.h"
#include "stages/prune/prune_stage.h"
#include "stages/quantize/quantize_stage.h"
#include "stages/rename/rename_stage.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {

struct ComparisonOptions {
  // Of checkpoint folders: they are compared as the models that the source `huggingface` makes of them.
  huggingface::OutType out_type = huggingface::OutType::kAuto;
  std::string importance{};                 // a file for A, GGUF or legacy .dat: gives the weighted error; empty: none
  std::optional<std::uint64_t> memory{};    // bytes of tensor data held at once; none: as limits.memory by default
  unsigned threads = 0;                     // 0: as many as the machine gives this process
  const std::atomic<bool>* stop = nullptr;  // once it is set the comparison ends with kInterrupted
  // Bytes read and how many there are: from one thread at a time, not more often than every 50 ms.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
  std::string html{};      // where a page is written; empty: none
  bool overwrite = false;  // replace a page that is there already
};

struct Comparison {
  Report report;  // its one output is the model B
  std::vector<std::string> warnings;
};

struct VerifyOptions {
  std::string manifest{};                   // empty: FILE.manifest.json, if it is there
  std::optional<std::uint64_t> memory{};    // bytes of tensor data held at once; none: as limits.memory by default
  unsigned threads = 0;                     // 0: as many as the machine gives this process
  const std::atomic<bool>* stop = nullptr;  // once it is set it ends with kInterrupted
  // Bytes read and how many there are: from one thread at a time.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

struct Verification {
  std::vector<std::string> files;
  std::uint64_t tensors = 0, bytes = 0;
  std::string manifest;  // that they were compared with; empty: there is none
  std::vector<std::string> warnings;
};

struct MeasureOptions {
  RunOptions run{};  // engine, I/O and stop; the rest is not used
  // A file that gets each tensor when it is measured: a later call goes on from there, with the same figures. It stays,
  // for the caller to remove. Empty: none.
  std::string journal{};
  std::vector<std::string> other_journals{};   // of other parts: what these have is not measured again
  std::uint64_t journal_bytes = 256ull << 20;  // of the source, at least, between two times that the journal is written
  // Measures part `part` of `parts`, a run of whole tensors: as many bytes of the source as they allow.
  std::size_t part = 0, parts = 1;
  // Called first where journals have `known` of the `all` tensors.
  std::function<void(std::size_t known, std::size_t all)> goes_on{};
  // Told what is left alone of journals, and why.
  std::function<void(const std::string& warning)> warn{};
  // Bytes read and how many there are: from one thread at a time, not more often than every 50 ms.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

class Context;

// Whether a job has a target (`quantize: {target: ...}`) that nothing is measured for; and a measurement for all such.
bool needs_measurement(const Job& job);
// Fails where such a job could not be run whatever was measured: for before measure().
Status check_unmeasured(const Context& context, const Job& job, bool overwrite);
void give_measurement(Job& job, const std::shared_ptr<const Measurement>& measurement);

// Kernels and what pipeline files can name. Movable.
class Context {
 public:
  // Looks for kernel modules beside the library and in options.directories: see kernels.h, also for the errors.
  static Result<Context> create(const KernelOptions& options = {});

  const Kernels& kernels() const { return *kernels_; }
  const Registry& registry() const { return *registry_; }

  // The headers of a GGUF file, or of a model in shards, named by its first; of a checkpoint folder (one with
  // config.json), as the model that the source `huggingface` makes of it; of other folders with safetensors, or a file
  // of them, as they stand. Exit code 4 for what is malformed.
  Result<Model> inspect(const std::string& path, huggingface::OutType out_type = huggingface::OutType::kAuto) const;

  // The recipes, built in and of files: what make_quantize_stage() takes.
  RecipeShelf recipes() const;

  // A pipeline file, or the text of one; `name` stands for its path in messages.
  Result<Job> load_job(const std::string& path, const JobOptions& options = {}) const;
  Result<Job> parse_job(const std::string& text, const std::string& name, const JobOptions& options = {}) const;

  // The jobs of a pipeline file that may have a `matrix`, for run_batch().
  Result<Batch> load_batch(const std::string& path, const JobOptions& options = {}) const;
  Result<Batch> parse_batch(const std::string& text, const std::string& name, const JobOptions& options = {}) const;

  // The pipeline file that does what llama-quantize does of these options, for parse_job(). Warnings are added: of what
  // is taken in another way than it is written.
  Result<std::string> quantize_pipeline(const QuantizeOptions& options, std::vector<std::string>& warnings) const;

  // The pipeline file that does what convert_hf_to_gguf.py does of these options, for parse_job(). Reads the headers of
  // the checkpoint where the output's name depends on what it holds.
  Result<std::string> convert_pipeline(const ConvertOptions& options) const;

  // Reads headers, never weights; writes nothing. Warnings are in Plan::warnings; what stands in the way of a run is
  // no error yet: see problems() and check().
  Result<Plan> plan(const Job& job) const;

  // What no state of disks or memory would mend: problems of the model (importance that lacks, rows that nothing fits),
  // limits out of range, paths that are written twice or are also read, types without a kernel.
  std::vector<Error> problems(const Plan& plan) const;
  // These, and what can be known to go wrong here and now: outputs that exist (without `overwrite`) or cannot be made,
  // too little space, too little memory.
  std::vector<Error> check(const Plan& plan, bool overwrite) const;

  // Every file that a job reads, as far as headers tell: the pipeline file, recipes, the source, importance.
  Result<std::vector<std::string>> inputs(const Job& job) const;
  // For files that a caller writes itself of what it has `read`: refuses (exit code 2) one that is read, or a kernel
  // module, by whatever name, and without `overwrite` one that exists.
  Status check_written(const WrittenPath& written, std::vector<std::string> read, bool overwrite) const;

  // check(), then all outputs, the report and the trace, each whole or not at all; the outputs become visible together.
  // Goes on with what an earlier run of the same plan left (options.resume). To stop it set options.stop, from
  // wherever: the progress function, another thread, a signal handler. An error of the report or the trace comes when
  // the outputs are there; it says so.
  // For many outputs the process's limit of open files is raised as far as is needed and allowed. With limits.nice the
  // run has a thread of its own; TBB's threads, which the process shares, may stay as nice.
  Result<RunReport> run(const Plan& plan, const RunOptions& options) const;
  // What run() writes as the report of the plan.
  Report report_of(const Plan& plan, const RunReport& run) const;

  // What runs that ended early have left beside the outputs: looks, changes nothing. And removes it, but for what a run
  // is writing now.
  Leftovers leftovers(const Plan& plan) const;
  Status discard(const Leftovers& leftovers) const;

  // A model file or the manifest of an output, read from end to end: structure, zeros between the tensors, numbers and
  // scales finite, and where there is a manifest sizes and checksums. Exit code 4 for what is malformed or not finite,
  // 3 for what is not as the manifest says.
  Result<Verification> verify(const std::string& path, const VerifyOptions& options = {}) const;
  // Of each output whether it is there as the plan would make it, as its manifest says; see unchanged_outputs().
  std::vector<bool> unchanged(const Plan& plan, const std::atomic<bool>* stop = nullptr) const;

  // What each candidate type would cost each tensor that the job's targets choose for: one read of the source, nothing
  // of the model is written. The same numbers whatever the threads and the memory.
  Result<Measurement> measure(const Job& job, const MeasureOptions& options = {}) const;
  // All that measure() would do, without journals and parts: to estimate its time.
  Result<Plan> plan_measurement(const Job& job) const;

  // Rows of numbers in memory made rows of a type, or the other way round: the bytes of a run. And rows of a tensor of
  // a model that inspect() gave, as they are or as F32. See rows_in_memory.h, also for the errors.
  Status convert_rows(const RowConversion& conversion, const RowsOptions& options = {}) const;
  Status read_rows(const RowsOfTensor& wanted, const RowsOptions& options = {}) const;

  // Of a job's output with a target that is measured: what the best choices of all sizes lose, and the built-in
  // recipes. Exit code 2 for an output without such a target.
  Result<std::vector<CurvePoint>> curve(const Job& job, std::size_t output, std::size_t points) const;

  // Two models of any kind that inspect() reads, tensor by tensor of the same name.
  Result<Comparison> compare(const std::string& a, const std::string& b, const ComparisonOptions& options = {}) const;

 private:
  explicit Context(std::shared_ptr<const Kernels> kernels);

  std::shared_ptr<const Kernels> kernels_;
  std::shared_ptr<const Registry> registry_;  // over the kernels' types
};

}  // namespace ggufmill
