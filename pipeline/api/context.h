#pragma once
// The library's functions for pipeline files and everything they can name: plans, checks, runs, batches, measurements,
// comparisons, verification, and rows in memory. The program, the Python module and the C interface (ggufmill.h) call
// them.
//
//   auto context = ggufmill::Context::create();
//   auto job = context.value().load_job("job.yaml");
//   auto plan = context.value().plan(job.value());
//   ggufmill::RunOptions options;
//   options.progress = [](const ggufmill::Progress& now) { ... };
//   auto report = context.value().run(plan.value(), options);
//
// A Job can also be built without a pipeline file from make_gguf_source(), make_quantize_stage(), make_gguf_sink() and
// similar functions.
//
// Errors: every call returns a Result, which is either the value or an Error; its `also` lists the other errors found
// by the same call. The only exception thrown is std::bad_alloc. The library prints nothing and never ends the program.
// Warnings are returned as data with the results.
//
// Ownership: objects returned by a Context point into it (types, kernels), so the Context must outlive them; it may be
// moved. Strings and options are copied.
//
// Threads: a Context is immutable, and all its calls are thread-safe. Several Contexts may exist at the same time, each
// with its own modules and types.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/batch.h"
#include "pipeline/api/measurement_cache.h"
#include "pipeline/api/probe.h"
#include "pipeline/api/run.h"
#include "pipeline/config/job.h"
#include "pipeline/core/error.h"
#include "pipeline/core/model.h"
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
  // Output type for checkpoint folders, which are compared as the models that the source `huggingface` makes from them.
  OutType out_type = OutType::kAuto;
  std::string importance{};                 // importance of A (GGUF or legacy .dat), for weighted errors; empty: none
  std::optional<std::uint64_t> memory{};    // bytes of tensor data held in memory; none: default of limits.memory
  unsigned threads = 0;                     // 0: the number of CPUs available to this process
  const std::atomic<bool>* stop = nullptr;  // when set, the comparison ends with kInterrupted
  // Receives the bytes read and their total. Called from one thread at a time, at most every 50 ms.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
  std::string html{};      // path of the page to write; empty: none
  bool overwrite = false;  // replace an existing page
};

struct Comparison {
  Report report;  // its only output is model B
  std::vector<std::string> warnings;
};

struct VerifyOptions {
  std::string manifest{};                   // empty: FILE.manifest.json, if it exists
  std::string against{};                    // model that the file was made from; empty: values are not compared
  bool allow_missing = false;               // missing files or tensors of a checkpoint cause only a warning
  std::optional<std::uint64_t> memory{};    // bytes of tensor data held in memory; none: default of limits.memory
  unsigned threads = 0;                     // 0: the number of CPUs available to this process
  const std::atomic<bool>* stop = nullptr;  // when set, the verification ends with kInterrupted
  // Receives the bytes read and their total. Called from one thread at a time.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

struct Verification {
  std::vector<std::string> files;
  std::uint64_t tensors = 0, bytes = 0;
  std::string manifest;        // path of the manifest used; empty: there was none
  std::uint64_t compared = 0;  // tensors whose values were compared with those of VerifyOptions::against
  std::uint64_t skipped = 0;   // the other tensors, if it is set: renamed, new, or of renumbered layers
  std::vector<std::string> warnings;
};

struct MeasureOptions {
  RunOptions run{};  // only engine, I/O and stop are used
  // Folder of the cache: what it contains is not measured again, and what is measured is added to it about every ten
  // seconds, and at the latest after `batch_bytes` bytes of source or a longer tensor. Empty: no cache.
  std::string cache = measurement_cache_folder();
  bool starts_over = false;  // measure everything, whatever the cache contains
  std::uint64_t batch_bytes = 256ull << 20;
  // Measures only part `part` of `parts`: a range of whole tensors. The parts are as equal in source bytes as whole
  // tensors allow.
  std::size_t part = 0, parts = 1;
  // Called first if `known` of the `all` tensors do not have to be measured.
  std::function<void(std::size_t known, std::size_t all)> known{};
  // Receives a warning for each kind of problem with the cache.
  std::function<void(const std::string& warning)> warn{};
  // Receives the bytes read and their total. Called from one thread at a time, at most every 50 ms.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

// The part of a job's measurement that the cache contains.
struct Recalled {
  std::shared_ptr<const Measurement> measurement;  // null if it is not complete
  std::size_t tensors = 0, known = 0;              // tensors to be measured, and those that the cache contains
  std::vector<std::string> warnings;               // one for each kind of problem with the cache
};

class Context;

// Removes from a job the outputs that already exist unchanged (Context::unchanged()); `plan` is that of the job.
// Returns the paths of their first files. Removes nothing if an interrupted run has to be resumed first. Fails with
// exit code 2 if the plan writes no manifests.
Result<std::vector<std::string>> drop_unchanged(const Context& context, const Plan& plan, Job& job,
                                                const std::atomic<bool>* stop = nullptr);

// needs_measurement() returns true if the job has a target (`quantize: {target: ...}`) without a measurement;
// give_measurement() sets the measurement of all such targets.
bool needs_measurement(const Job& job);
// Fails if a job without a measurement could not be run whatever the measurement contained. To be called before
// measure().
Status check_unmeasured(const Context& context, const Job& job, bool overwrite);
// Returns true if the size of an output is known, that is, none of its targets needs a measurement.
bool is_measured(const PlannedOutput& output);
void give_measurement(Job& job, const std::shared_ptr<const Measurement>& measurement);
// Returns the job with unmeasured targets, whatever measurements the pipeline file names: to measure again.
Job without_measurements(const Job& job);
// Returns the job with unmeasured targets that use searches instead of the reference's encoders, or the other way
// round.
Job with_other_encoders(const Job& job);
// Returns the job with the measurement from the cache, if it needs one that the cache contains.
Job with_recalled(const Context& context, const Job& job);

// Owns the kernels and everything that pipeline files can name. Movable.
class Context {
 public:
  // Loads the kernel modules found next to the library and in options.directories. See kernels.h for details and
  // errors. `maps`: folders and files of architecture maps that are added to the built-in ones; fails with exit code 2
  // for errors in them. They are read again when a checkpoint is opened.
  static Result<Context> create(const KernelOptions& options = {}, std::vector<std::string> maps = {});

  const Kernels& kernels() const { return *kernels_; }
  // The options given to create().
  const KernelOptions& kernel_options() const GGUFMILL_OUTLIVES_RESULT { return kernel_options_; }
  const Registry& registry() const { return *registry_; }
  // The folders and files of architecture maps given to create().
  const std::vector<std::string>& maps() const GGUFMILL_OUTLIVES_RESULT { return maps_; }
  // Returns true if plan() has read maps() for this plan. If not, the job reads no checkpoint, and they have no effect.
  bool has_read_maps(const Plan& plan) const;

  // Reads the headers of a model: a GGUF file, or the first shard of one; a checkpoint folder (one with config.json),
  // as the model that the source `huggingface` makes from it; or any other folder of safetensors files or a single one,
  // without conversion. A checkpoint with missing files or tensors causes a warning. Fails with exit code 4 for
  // malformed files.
  Result<Model> inspect(const std::string& path, OutType out_type = OutType::kAuto) const;

  // Returns the catalog of recipes, built-in and from files, for make_quantize_stage().
  RecipeCatalog recipes() const;

  // Read a pipeline file or its text; messages show `name` as the path of the text.
  Result<Job> load_job(const std::string& path, const JobOptions& options = {}) const;
  Result<Job> parse_job(const std::string& text, const std::string& name, const JobOptions& options = {}) const;

  // Read the jobs of a pipeline file, which may have a `matrix`, for run_batch().
  Result<Batch> load_batch(const std::string& path, const JobOptions& options = {}) const;
  Result<Batch> parse_batch(const std::string& text, const std::string& name, const JobOptions& options = {}) const;

  // Plans a job. Reads headers, never weights; writes nothing. Warnings are in Plan::warnings. Conditions that prevent
  // a run are not errors yet: see problems() and check().
  Result<Plan> plan(const Job& job) const;

  // Returns the errors that no change to disks or memory would fix: problems of the model (missing importance, row
  // lengths that no type fits), limits out of range, paths that are written twice or also read, types without a kernel.
  std::vector<Error> problems(const Plan& plan) const;
  // Returns the same errors and those caused by the current state of the machine: outputs that exist (unless
  // `overwrite` is set) or cannot be created, too little disk space, too little memory.
  std::vector<Error> check(const Plan& plan, bool overwrite) const;

  // Returns every file that a job reads, as far as headers show: the pipeline file, recipes, the source, importance.
  Result<std::vector<std::string>> inputs(const Job& job) const;
  // Checks the path of a file that the caller will write itself, derived from the files in `read`. Fails with exit
  // code 2 if the path refers, under any name, to one of these files or to a kernel module, or if it exists and
  // `overwrite` is false.
  Status check_written(const WrittenPath& written, std::vector<std::string> read, bool overwrite) const;

  // Calls check(), then writes all outputs, the report and the trace. Each file is written completely or not at all,
  // and the outputs become visible together. Resumes an earlier run of the same plan if options.resume is set. To stop
  // the run, set options.stop from the progress function, another thread or a signal handler. An error that concerns
  // only the report or the trace is returned after the outputs have been written, as its message states. Raises the
  // process's limit on open files if many outputs require that and the system allows it. If limits.nice is set, the run
  // uses a thread of its own; TBB's threads, which the whole process shares, may keep the niceness.
  Result<RunReport> run(const Plan& plan, const RunOptions& options) const;
  // Returns the report of the plan that run() writes.
  Report report_of(const Plan& plan, const RunReport& run) const;

  // leftovers() returns the files that interrupted runs left next to the outputs and changes nothing. discard() removes
  // them, except those in use by a running process.
  Leftovers leftovers(const Plan& plan) const;
  Status discard(const Leftovers& leftovers) const;

  // Reads a model file, or all files of a manifest, from end to end and checks its structure, that the padding between
  // tensors is zero, that numbers and scales are finite and, if there is a manifest, sizes and checksums. Fails with
  // exit code 4 if the model is malformed or not finite, 3 if it differs from the manifest.
  Result<Verification> verify(const std::string& path, const VerifyOptions& options = {}) const;
  // Returns, for each output, true if it exists and its manifest shows that the plan would not change it; see
  // unchanged_outputs().
  std::vector<bool> unchanged(const Plan& plan, const std::atomic<bool>* stop = nullptr) const;

  // Measures the error that each candidate type would cause in each tensor for which a target of the job chooses a
  // type. Reads the source once and writes no part of the model. The results do not depend on the number of threads or
  // the memory.
  Result<Measurement> measure(const Job& job, const MeasureOptions& options = {}) const;
  // Returns the plan of what measure() would measure with these options, to estimate its time.
  Result<Plan> plan_measurement(const Job& job, const MeasureOptions& options = {}) const;
  // Looks up the measurement of the job in the cache; plan() does so for targets that have none.
  Result<Recalled> recall(const Job& job, const MeasureOptions& options = {}) const;

  // convert_rows() converts rows of numbers in memory to a type or back, with the same bytes as a run. choose_levels()
  // replaces the levels of encoded rows in memory, with the covariance of what they are multiplied with. read_rows()
  // reads rows of a tensor of a model returned by inspect(), in its own type or as F32. See rows_in_memory.h, also for
  // the errors.
  Status convert_rows(const RowConversion& conversion, const RowsOptions& options = {}) const;
  Status choose_levels(const LevelChoice& choice, const RowsOptions& options = {}) const;
  Status read_rows(const RowsOfTensor& wanted, const RowsOptions& options = {}) const;

  // Returns, for an output with a measured target, the losses of the best choices for all sizes and those of the
  // built-in recipes, and the same with with_other_encoders() if the cache contains that measurement. Fails with exit
  // code 2 for an output without such a target.
  Result<Curve> curve(const Job& job, std::size_t output, std::size_t points) const;

  // Compares the tensors that have the same name in two models of any kind that inspect() reads. The safetensors file
  // of a diffusion model is compared with a file of another format as the model that the source `diffusion` makes of
  // it.
  Result<Comparison> compare(const std::string& a, const std::string& b, const ComparisonOptions& options = {}) const;

 private:
  Context(std::shared_ptr<const Kernels> kernels, KernelOptions kernel_options, std::vector<std::string> maps,
          std::vector<std::string> map_files);

  KernelOptions kernel_options_;
  std::vector<std::string> maps_, map_files_;  // map_files_: all files that were read for maps_
  std::shared_ptr<const Kernels> kernels_;
  std::shared_ptr<const Registry> registry_;  // refers to the kernels' types
};

}  // namespace ggufmill
