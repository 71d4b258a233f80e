/* libggufmill: converts and quantizes the weight files of machine-learning models. This is the C interface;
 * ggufmill.hpp wraps it for C++. Both can be included in any C11 or C++17 source.
 *
 *   ggufmill_context* context;
 *   ggufmill_job* job;
 *   ggufmill_error* error = NULL;
 *   if (ggufmill_context_create(NULL, &context, &error) != GGUFMILL_SUCCESS ||
 *       ggufmill_job_open(context, "job.yaml", NULL, &job, &error) != GGUFMILL_SUCCESS ||
 *       ggufmill_job_run(job, "{\"overwrite\": true}", NULL, NULL, &error) != GGUFMILL_SUCCESS)
 *     fprintf(stderr, "%s", ggufmill_error_text(error));
 *
 * Everything the program `ggufmill` can do is available.
 *
 * Status. A function that can fail returns GGUFMILL_SUCCESS, or the exit code that the program would return. If its
 * last parameter is not null, a failure stores an error there, to be freed with ggufmill_error_free(), and success
 * stores null. A failure stores nothing in the other output parameters, except where a function's comment says so.
 * The library prints nothing, never ends the program, installs no signal
 * handler, and throws no C++ exception through this interface. A function may be called with null only for a parameter
 * that its comment calls optional, and for an object to be freed; other null pointers are GGUFMILL_ERROR_USAGE.
 *
 * Ownership. The caller frees what a function has stored in an output parameter: strings with ggufmill_free(), objects
 * with the function named after them, in any order. Arguments are copied and may be freed as soon as a function
 * returns. Strings returned by a function that takes an error or a tensor belong to that object or its model.
 *
 * Threads. All functions are thread-safe. A job, a model and a context do not change and may be used by several threads
 * at the same time; freeing one while another thread uses it is an error. Long operations use all cores and return when
 * they are done.
 *
 * Text is UTF-8. Paths, and names of files and tensors, may contain any bytes but zero; in JSON, a byte that is not
 * UTF-8 appears as \xNN. An `options` parameter is optional: a JSON object whose keys the function's comment lists.
 * Unknown keys and values of the wrong kind are GGUFMILL_ERROR_USAGE. Results are JSON objects; later versions may add
 * members.
 *
 * Versions. The minor version changes when a program has to be compiled again; that ends with version 1. Structures
 * that begin with `size` may grow: whoever provides the memory sets `size` to its sizeof. */
#ifndef GGUFMILL_H
#define GGUFMILL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUFMILL_VERSION_MAJOR 0
#define GGUFMILL_VERSION_MINOR 1
#define GGUFMILL_VERSION_PATCH 0
#define GGUFMILL_VERSION_NUMBER (GGUFMILL_VERSION_MAJOR * 10000 + GGUFMILL_VERSION_MINOR * 100 + GGUFMILL_VERSION_PATCH)

/* Marks the exported functions. */
#if defined(__GNUC__) && !defined(_WIN32)
#define GGUFMILL_API __attribute__((visibility("default")))
#else
#define GGUFMILL_API
#endif

/* Marks functions that a later version removes, with what replaces them. */
#if defined(__GNUC__) && !defined(GGUFMILL_NO_DEPRECATION)
#define GGUFMILL_DEPRECATED(instead) __attribute__((deprecated(instead)))
#else
#define GGUFMILL_DEPRECATED(instead)
#endif

/* Return the version of the library that runs, as "0.1.0" and as GGUFMILL_VERSION_NUMBER. */
GGUFMILL_API const char* ggufmill_version(void);
GGUFMILL_API int ggufmill_version_number(void);

/* Frees a string that a function stored in an output parameter. */
GGUFMILL_API void ggufmill_free(char* text);

/* ---- errors ---- */

typedef enum ggufmill_status {
  GGUFMILL_SUCCESS = 0,
  GGUFMILL_ERROR_INTERNAL = 1,     /* a defect of the library */
  GGUFMILL_ERROR_USAGE = 2,        /* arguments, options or the pipeline file */
  GGUFMILL_ERROR_VERIFICATION = 3, /* a file does not match */
  GGUFMILL_ERROR_BAD_INPUT = 4,    /* an input file is malformed */
  GGUFMILL_ERROR_KERNEL = 5,       /* kernel or ISA not available, or a module has a defect */
  GGUFMILL_ERROR_IO = 6,           /* no space, no permission, failed reads and writes */
  GGUFMILL_ERROR_TRANSIENT = 75,   /* try again: out of memory, a file is in use */
  GGUFMILL_ERROR_INTERRUPTED = 130 /* ended by ggufmill_control_cancel() */
} ggufmill_status;

/* One error, or several that one call found, numbered from 0. */
typedef struct ggufmill_error ggufmill_error;

/* Returns the number of errors, which is at least 1; 0 for null. */
GGUFMILL_API size_t ggufmill_error_count(const ggufmill_error* error);

/* Return the parts of an error; empty strings if it has no such part, or no error has this number.
 *   where   "job.yaml:9:56", "models/a.gguf"
 *   what    the problem, in one line
 *   detail  further lines: the line of the pipeline file with a caret, a byte offset, a limit
 *   help    how to fix it */
GGUFMILL_API ggufmill_status ggufmill_error_code(const ggufmill_error* error, size_t index);
GGUFMILL_API const char* ggufmill_error_where(const ggufmill_error* error, size_t index);
GGUFMILL_API const char* ggufmill_error_what(const ggufmill_error* error, size_t index);
GGUFMILL_API const char* ggufmill_error_detail(const ggufmill_error* error, size_t index);
GGUFMILL_API const char* ggufmill_error_help(const ggufmill_error* error, size_t index);

/* Return one error, or all of them, as the program prints them: one or more lines each. */
GGUFMILL_API const char* ggufmill_error_message(const ggufmill_error* error, size_t index);
GGUFMILL_API const char* ggufmill_error_text(const ggufmill_error* error);

GGUFMILL_API void ggufmill_error_free(ggufmill_error* error);

/* ---- progress and cancellation ---- */

typedef struct ggufmill_progress {
  size_t size; /* sizeof(ggufmill_progress) of the library */
  uint64_t bytes_read, bytes_to_read;
  uint64_t bytes_written, bytes_to_write; /* of tensors; 0 for operations that only read */
  double seconds;                         /* since the operation began */
  const char* tensor;                     /* finished last; may be empty; valid during the call */
} ggufmill_progress;

/* Receives the progress of an operation: at most every 50 ms, on any thread, one call at a time for
 * each operation. Must return soon, must not call a long operation, and must not throw a C++ exception: one that it
 * throws cancels the operations of the control, which end with GGUFMILL_ERROR_USAGE. */
typedef void (*ggufmill_progress_function)(const ggufmill_progress* progress, void* user_data);

/* Cancels the operations that it is passed to, one or several, and receives the progress of those that read or write
 * models: job_run, plan_run, job_measure, job_curve and call. Optional for every operation. */
typedef struct ggufmill_control ggufmill_control;

/* Creates a control; returns null if memory is exhausted. Both parameters are optional. */
GGUFMILL_API ggufmill_control* ggufmill_control_create(ggufmill_progress_function progress, void* user_data);

/* Ends the operations with GGUFMILL_ERROR_INTERRUPTED, those in progress and those that begin later. May be called from
 * any thread, from the progress function, and from a signal handler. Returns at once: the operation may take some
 * milliseconds to end, and may still succeed. A canceled run keeps the finished work, and the next one resumes it. */
GGUFMILL_API void ggufmill_control_cancel(ggufmill_control* control);

GGUFMILL_API void ggufmill_control_free(ggufmill_control* control);

/* ---- contexts ---- */

/* Owns the kernels. Jobs and models keep theirs alive. Several may exist at the same time. */
typedef struct ggufmill_context ggufmill_context;

/* Loads the kernel modules from the library's own folder and from other folders. Options:
 *   isa            use only kernels for this ISA (string)
 *   kernel_dirs    folders with additional modules (list of strings)
 *   architectures  folders of architecture maps and map files to add to the built-in ones (list of strings)
 *   names          how errors name options: "json" (default), as "threads", or "python", as threads=
 * GGUFMILL_ERROR_KERNEL if the ISA or a folder is not usable, GGUFMILL_ERROR_USAGE for errors in maps. */
GGUFMILL_API ggufmill_status ggufmill_context_create(const char* options, ggufmill_context** context,
                                                     ggufmill_error** error);
GGUFMILL_API void ggufmill_context_free(ggufmill_context* context);

/* ---- operations ---- */

/* Carries out an operation: verify, compare, hash, ... `ggufmill schema operations --reference` describes them: their
 * options, which are the members of the JSON object `request` (optional if none is required), and the members of their
 * results, also JSON objects, to which `warnings` (list of strings) is added. Each is a verb of the program, too. If a
 * result is not as the request requires (a hash differs), the function fails and also stores the result. Unknown
 * operations and options, and values of the wrong kind, are GGUFMILL_ERROR_USAGE.
 *
 * ggufmill_kernels.h, for modules, has a type of this name: no source can use both. */
#ifndef GGUFMILL_KERNELS_H
GGUFMILL_API ggufmill_status ggufmill_call(const ggufmill_context* context, const char* operation, const char* request,
                                           ggufmill_control* control, char** result, ggufmill_error** error);
#endif

/* ---- jobs ---- */

/* A pipeline file: one source with its outputs, or a batch of them (`matrix`). The functions of jobs, plans and cluster
 * jobs call the operations of the same names (check, plan, run, status, measure, curve, probe, submit, part, seal,
 * resume, cancel, render), which ggufmill_call() calls without them: {"job": "job.yaml", "overwrite": true}, where
 * `job` is a path, an object with the contents of a pipeline file, or their text, of several lines. The options of an
 * operation are those of its functions, too. A later version keeps only ggufmill_call(). */
typedef struct ggufmill_job ggufmill_job;

/* Read a pipeline file, or the text of one, YAML or JSON; messages show `name` as its path. Relative paths start at the
 * working directory. Options:
 *   set          values to override (list of strings: "outputs.0.gguf=out/a.gguf")
 *   parameters   values of declared parameters (list of strings: "NAME=value")
 *   threads      number of threads; overrides limits.threads (number)
 *   io           cached, streaming or direct; overrides limits.io (string)
 *   errors       measure the error of each tensor, for the report (true or false)
 *   measurement  a file written by ggufmill_job_measure(), for targets that name none (string)
 *   profile      write a trace for Perfetto to this file; not for a batch (string)
 *   inputs       further files that the text was made from, which no output may replace (list of strings) */
GGUFMILL_API ggufmill_status ggufmill_job_open(const ggufmill_context* context, const char* path, const char* options,
                                               ggufmill_job** job, ggufmill_error** error);
GGUFMILL_API ggufmill_status ggufmill_job_parse(const ggufmill_context* context, const char* text, const char* name,
                                                const char* options, ggufmill_job** job, ggufmill_error** error);
GGUFMILL_API void ggufmill_job_free(ggufmill_job* job);

/* clang-format off */
/* Translates the arguments of another tool into a pipeline file for ggufmill_job_parse(): {pipeline, inputs, warnings}.
 * `tool` and its options:
 *   "llama-quantize"
 *       words: list of INPUT [OUTPUT] TYPE[,TYPE...] [THREADS]
 *       allow-requantize, leave-output-tensor, pure, keep-split, hide-imatrix, repack, allow-missing: true or false
 *       imatrix, covariance, encoder, output-tensor-type, token-embedding-type, prune-layers, max-buffer-size: string
 *       include-weights, exclude-weights, tensor-type, tensor-type-file, override-kv, custom-q,
 *       repack-pattern, architectures: list of strings
 *   "convert_hf_to_gguf.py"
 *       folder, outfile, outtype, model-name, metadata, split-max-size, target-model-dir: string
 *       split-max-tensors: number
 *       no-tensor-first-split, bigendian, vocab-only, mmproj, mtp, no-mtp, dspark, fuse-gate-up-exps, fuse-qkv, fp8-as-q8,
 *       allow-missing, mistral-format, sentence-transformers-dense-modules: true or false
 *       architectures: list of strings
 *       defaults: "transformers" or "none"; has no effect, with a warning
 *   "convert_lora_to_gguf.py"
 *       adapter, base, outfile, outtype: string
 *       bigendian: true or false
 *       architectures: list of strings
 *       defaults: "transformers" or "none"; has no effect, with a warning
 *   "llama-gguf-split"
 *       input, output: string; without `merge`, `output` is the name of the shards without -00001-of-0000N.gguf
 *       split-max-size: string; or split-max-tensors: number
 *       no-tensor-first-split: true or false
 *       merge: true to write one file; with `clean`: true, it has no keys split.* */
/* clang-format on */
GGUFMILL_API ggufmill_status ggufmill_pipeline_of(const ggufmill_context* context, const char* tool,
                                                  const char* options, char** json, ggufmill_error** error);

/* Checks everything that can be known without reading weights. Success means that ggufmill_job_run() can start; a
 * failure lists all problems. Writes nothing. Option: overwrite (true or false). */
GGUFMILL_API ggufmill_status ggufmill_job_check(const ggufmill_job* job, const char* options, ggufmill_error** error);

/* Describes what a run would do, without reading weights or writing anything:
 *   {source: {name, architecture, files, tensors, weights, bytes}, outputs: [{files: [{path, bytes}], recipe, problems,
 *    tensors: [{name, shape, from, to, fallback_from, bytes_from, bytes, importance, why}], weights, tensor_bytes_from,
 *    tensor_bytes, bits_per_weight}], bytes_read, bytes_written, least_memory, warnings}
 * or, for a batch, {sources: [{...}]}, one for each source. Options:
 *   written    return the plan in its canonical form instead, which is the same on every machine; not for a batch
 *   html       also write a page with a picture of each output to this file (string)
 *   overwrite  replace an existing page (true or false) */
GGUFMILL_API ggufmill_status ggufmill_job_plan(const ggufmill_job* job, const char* options, char** json,
                                               ggufmill_error** error);

/* clang-format off */
/* Runs a job: reads the source once and writes all outputs, each completely or not at all. Resumes an interrupted run.
 * Measures targets first whose measurement is not in the cache. A batch processes its sources in order, skips unchanged
 * outputs, and continues after failures, which it reports at the end. A job with steps (importance that is computed,
 * quality, card, after) runs those that are not done, up to the first that fails. Options:
 *   overwrite       true: replace existing outputs
 *   resume          false: start over, and leave nothing if canceled
 *   skip_unchanged  true: skip outputs whose manifests show that the run would not change them
 *   fail_fast       true: for a batch, start nothing more after a failure
 *   engine          "graph", or "simple", which processes one slab at a time
 *   io_engine       "auto", "io_uring" or "threads"
 * `json` is optional: {report, unchanged, warnings}, where `report` has the form of report files, or, for a batch or a
 * job with steps, of batch reports: {cells: [{source, output, recipe, state, bytes, error, ...}], ...}; null if nothing
 * had to be written. A batch stores `json` even if it fails. */
/* clang-format on */
GGUFMILL_API ggufmill_status ggufmill_job_run(const ggufmill_job* job, const char* options, ggufmill_control* control,
                                              char** json, ggufmill_error** error);

/* The plan of a job, which is carried out as it is: a run fails if a source has changed since. */
typedef struct ggufmill_plan ggufmill_plan;

/* Plans a job; not a batch. Succeeds for plans with problems, which ggufmill_plan_check() returns as errors. */
GGUFMILL_API ggufmill_status ggufmill_plan_create(const ggufmill_job* job, ggufmill_plan** plan,
                                                  ggufmill_error** error);
GGUFMILL_API void ggufmill_plan_free(ggufmill_plan* plan);
GGUFMILL_API ggufmill_status ggufmill_plan_check(const ggufmill_plan* plan, ggufmill_error** error);

/* Describes a plan, as ggufmill_job_plan(). Option: written. */
GGUFMILL_API ggufmill_status ggufmill_plan_describe(const ggufmill_plan* plan, const char* options, char** json,
                                                    ggufmill_error** error);

/* Runs a plan, as ggufmill_job_run(), whose options it has except `skip_unchanged` and `fail_fast`. */
GGUFMILL_API ggufmill_status ggufmill_plan_run(const ggufmill_plan* plan, const char* options,
                                               ggufmill_control* control, char** json, ggufmill_error** error);

/* Describes the outputs, and the files that interrupted runs have left next to them: {running, can_resume, units,
 * units_done, outputs: [{path, bytes, there, sent}], leftovers: [{path, output, bytes, of_this_plan, in_use,
 * other_since, cluster_job}], cluster_jobs}, for a job with steps also {steps: [{step, what, done}]}, or, for a batch,
 * {sources: [{source, ...}]}. Reads only headers, and changes nothing. */
GGUFMILL_API ggufmill_status ggufmill_job_status(const ggufmill_job* job, char** json, ggufmill_error** error);

/* Removes the files that interrupted runs have left, except those that a run is writing. */
GGUFMILL_API ggufmill_status ggufmill_job_discard(const ggufmill_job* job, ggufmill_error** error);

/* Measures what each type costs each tensor, for a job with a target; not for a batch. What is measured is kept in the
 * user's cache, in $GGUFMILL_CACHE/measurements, $XDG_CACHE_HOME/ggufmill/measurements or
 * ~/.cache/ggufmill/measurements, and serves every job with the same values, importance, encoders and sample. Options:
 *   output       write the measurement to this file
 *   html         write a page to this file
 *   overwrite    replace existing files (true or false)
 *   resume       false: measure everything, whatever the cache contains
 *   part, parts  measure only part `part`, from 0, of `parts`, for the call that measures everything (numbers)
 * `json` is optional: the measurement. */
GGUFMILL_API ggufmill_status ggufmill_job_measure(const ggufmill_job* job, const char* options,
                                                  ggufmill_control* control, char** json, ggufmill_error** error);

/* Returns the loss of the best choice at each size, for an output with a measured target: {encoder, points: [{recipe,
 * bytes, loss, target}], other: {encoder, points}}, where `other` has the same for searches if the target uses the
 * reference's encoders, or the other way round, and is missing if that is not measured; not for a batch. Options:
 * output (number of the output, from 0), points (number of sizes; default 25), measure (true: first measure what is not
 * in the cache), html (page to write as well), overwrite (true or false). */
GGUFMILL_API ggufmill_status ggufmill_job_curve(const ggufmill_job* job, const char* options, ggufmill_control* control,
                                                char** json, ggufmill_error** error);

/* Measures how much each tensor matters with the program llama-perplexity, and writes the sensitivities to a file, from
 * which a later call resumes; not for a batch. Options: perplexity (path of the program), text (path of a text file),
 * output (file to write), type (string; default Q2_K), chunks, context, threads (numbers). */
GGUFMILL_API ggufmill_status ggufmill_job_probe(const ggufmill_job* job, const char* options, ggufmill_control* control,
                                                ggufmill_error** error);

/* ---- cluster jobs ---- */

/* The parts of a cluster job are written by processes on machines that share its folder; a last process seals the
 * outputs, which gives them their names. Relative paths of the pipeline file start at the working folder of the process
 * that submits it, which must also be the working folder of a process that calls the functions below.
 * pipeline/cluster/README.md describes the folder. */

/* Plans a job, divides the plan into parts, and hands them to the engine that `cluster` in the pipeline file names.
 * Targets must be measured. Options:
 *   folder, engine, parts  override those of `cluster` (string, "slurm" or "none", number)
 *   overwrite              replace existing outputs (true or false)
 *   dry_run                write and submit nothing (true or false)
 *   program                path of the program `ggufmill` on the nodes (string; default "ggufmill")
 *   isa, kernel_dirs       kernels for the parts, as in ggufmill_context_create()
 * Stores {folder, plan, parts, submitted: {parts, indices, seal}}, where `submitted` has Slurm's numbers, and is null
 * for the engine "none", whose parts and seal the caller starts. For a batch, {skipped: [{source, output, state,
 * error}]} lists the outputs that are unchanged or cannot be made. */
GGUFMILL_API ggufmill_status ggufmill_job_submit(const ggufmill_job* job, const char* options, char** json,
                                                 ggufmill_error** error);

/* Describes a cluster job: {folder, state, done, part_done, seal, parts: [{state, units, units_done, host, engine,
 * error, lost}]}, for a batch also {jobs}. `state` is "sealed", "running" or "needs resume". May take 12 seconds, the
 * interval of a part's heartbeat. */
GGUFMILL_API ggufmill_status ggufmill_cluster_status(const char* folder, char** json, ggufmill_error** error);

/* Runs a part, numbered from 0, on this machine. A part that is done returns at once, an interrupted one resumes.
 * Options: threads (number), isa (string). `json` is optional: {was_done, units, units_kept, seconds, warnings}.
 * GGUFMILL_ERROR_TRANSIENT: trying again may help. */
GGUFMILL_API ggufmill_status ggufmill_cluster_part(const char* folder, uint64_t part, const char* options,
                                                   ggufmill_control* control, char** json, ggufmill_error** error);

/* Checks what the parts wrote, and gives the outputs their names. Option: wait, how many seconds to wait for parts that
 * are not done (number). `json` is optional: {jobs: [{source, was_sealed, edges, seconds, warnings}]}, where jobs that
 * failed are null. GGUFMILL_ERROR_TRANSIENT if parts are not done, or were damaged and have to be run again. */
GGUFMILL_API ggufmill_status ggufmill_cluster_seal(const char* folder, const char* options, ggufmill_control* control,
                                                   char** json, ggufmill_error** error);

/* Starts the parts that are not done, and the seal. Option: program, as above. Stores {was_sealed, parts, submitted,
 * warnings}, where `parts` lists their numbers. GGUFMILL_ERROR_USAGE if the job is running. */
GGUFMILL_API ggufmill_status ggufmill_cluster_resume(const char* folder, const char* options, char** json,
                                                     ggufmill_error** error);

/* Cancels a job. Finished work is kept unless the option `discard` (true) is set, which removes the job and its
 * incomplete outputs. */
GGUFMILL_API ggufmill_status ggufmill_cluster_cancel(const char* folder, const char* options, ggufmill_error** error);

/* Returns a job with engine "none" as manifests for Kubernetes, in JSON. Options: claim (PersistentVolumeClaim of the
 * shared volume; required), mount (its path; default: the mount point of the job's file system), image (default
 * "ggufmill:latest"). */
GGUFMILL_API ggufmill_status ggufmill_cluster_render(const char* folder, const char* options, char** json,
                                                     ggufmill_error** error);

/* ---- models ---- */

/* A model that is open for reading. */
typedef struct ggufmill_model ggufmill_model;

/* Opens a GGUF file or the first of its shards, a checkpoint folder (as a conversion would write it), or safetensors
 * files, by path or by address (https, hf, s3). Reads headers. Option: outtype, for checkpoints (default "auto"). */
GGUFMILL_API ggufmill_status ggufmill_model_open(const ggufmill_context* context, const char* path, const char* options,
                                                 ggufmill_model** model, ggufmill_error** error);
GGUFMILL_API void ggufmill_model_free(ggufmill_model* model);

/* Returns the warnings about the files of a model: a list of strings. */
GGUFMILL_API ggufmill_status ggufmill_model_warnings(const ggufmill_model* model, char** json, ggufmill_error** error);

/* A file of a model. */
typedef struct ggufmill_file {
  size_t size;      /* set by the caller: sizeof(ggufmill_file) */
  const char* path; /* belongs to the model */
  uint64_t bytes;
  int64_t modified; /* nanoseconds since 1970; 0 if that is not known */
} ggufmill_file;

GGUFMILL_API size_t ggufmill_model_file_count(const ggufmill_model* model);
GGUFMILL_API ggufmill_status ggufmill_model_file(const ggufmill_model* model, size_t index, ggufmill_file* file,
                                                 ggufmill_error** error);

/* A metadata entry. `type` and `data` are as in a GGUF file of version 3, little-endian: 0 to 6 uint8, int8, uint16,
 * int16, uint32, int32, float32; 7 bool; 8 string: length (64 bits) and bytes; 9 array: type of the elements (32 bits),
 * count (64 bits) and elements; 10 to 12 uint64, int64, float64. */
typedef struct ggufmill_metadata {
  size_t size;     /* set by the caller: sizeof(ggufmill_metadata) */
  const char* key; /* belongs to the model, as does `data` */
  uint32_t type;
  uint64_t bytes;
  const void* data;
} ggufmill_metadata;

GGUFMILL_API size_t ggufmill_model_metadata_count(const ggufmill_model* model);
GGUFMILL_API ggufmill_status ggufmill_model_metadata(const ggufmill_model* model, size_t index,
                                                     ggufmill_metadata* metadata, ggufmill_error** error);

/* A tensor of a model: `rows` rows of `columns` values, in its own type `row_bytes` bytes each. */
typedef struct ggufmill_tensor {
  size_t size;         /* set by the caller: sizeof(ggufmill_tensor) */
  const char* name;    /* belongs to the model */
  const char* type;    /* belongs to the context */
  uint32_t dimensions; /* number of valid elements in `shape` */
  uint64_t shape[8];   /* columns first, as in GGUF files */
  uint64_t rows, columns, row_bytes;
  size_t file; /* number of the file that has all its bytes in one place; SIZE_MAX if they have to be assembled */
  uint64_t offset;
  int big_endian;
} ggufmill_tensor;

GGUFMILL_API size_t ggufmill_model_tensor_count(const ggufmill_model* model);

/* Describe the tensor with this number, from 0, or this name. GGUFMILL_ERROR_USAGE if there is none. */
GGUFMILL_API ggufmill_status ggufmill_model_tensor(const ggufmill_model* model, size_t index, ggufmill_tensor* tensor,
                                                   ggufmill_error** error);
GGUFMILL_API ggufmill_status ggufmill_model_find(const ggufmill_model* model, const char* name, ggufmill_tensor* tensor,
                                                 ggufmill_error** error);

/* Reads rows [first, first + rows) of a tensor. `type` is "F32", or optional for the bytes of the tensor's own type.
 * `into` is aligned for its elements and has exactly `bytes` bytes; its contents are undefined after an error.
 * `threads` 0 means all cores. */
GGUFMILL_API ggufmill_status ggufmill_model_read_rows(const ggufmill_model* model, const char* tensor, uint64_t first,
                                                      uint64_t rows, const char* type, void* into, uint64_t bytes,
                                                      unsigned threads, ggufmill_control* control,
                                                      ggufmill_error** error);

/* ---- rows in memory ---- */

/* Returns the size of a row of `columns` values in a type. GGUFMILL_ERROR_USAGE if that is not a whole number of
 * blocks. */
GGUFMILL_API ggufmill_status ggufmill_row_bytes(const ggufmill_context* context, const char* type, uint64_t columns,
                                                uint64_t* bytes, ggufmill_error** error);

/* Converts rows of values to a type, with the same bytes as a run. `from` is the type of the values: "F32", "F16",
 * "BF16" or "F64"; optional, for "F32". `importance` is optional: `importance_rows` rows of `columns` weights, either
 * one for all rows or one for each of the equal parts into which the rows are divided. `into` has exactly `bytes`
 * bytes. All arrays are aligned for their elements and do not overlap. GGUFMILL_ERROR_BAD_INPUT for values that are not
 * finite or too large. */
GGUFMILL_API ggufmill_status ggufmill_quantize_rows(const ggufmill_context* context, const char* type, const char* from,
                                                    const void* values, uint64_t rows, uint64_t columns,
                                                    const float* importance, uint64_t importance_rows, void* into,
                                                    uint64_t bytes, unsigned threads, ggufmill_control* control,
                                                    ggufmill_error** error);

/* Replaces the levels of encoded rows, as a run does with the encoder `covariance`: so that the squared error e H e^T
 * of each row is small, where e is the difference between its values and its decoded encoding, and H the sum of the
 * products x x^T of the vectors x that the rows are multiplied with. Scales and minimums of blocks remain; the values
 * need not be those from which they were made. `values` are F32. `covariance` is H: `columns` rows of `columns`
 * numbers, symmetric and positive definite, and taken as it is, so the caller shrinks and damps it. `sweeps` is how
 * often every level is reconsidered. `encoded` has exactly `bytes` bytes; its contents are undefined after an error.
 * GGUFMILL_ERROR_USAGE for a type without such levels, GGUFMILL_ERROR_BAD_INPUT for a matrix that is not positive
 * definite. */
GGUFMILL_API ggufmill_status ggufmill_choose_levels(const ggufmill_context* context, const char* type,
                                                    const float* values, uint64_t rows, uint64_t columns,
                                                    const double* covariance, unsigned sweeps, void* encoded,
                                                    uint64_t bytes, unsigned threads, ggufmill_control* control,
                                                    ggufmill_error** error);

/* Converts rows of a type to float32. `values` has exactly `bytes` bytes, `into` has rows * columns elements. */
GGUFMILL_API ggufmill_status ggufmill_decode_rows(const ggufmill_context* context, const char* type, const void* values,
                                                  uint64_t bytes, uint64_t rows, uint64_t columns, float* into,
                                                  unsigned threads, ggufmill_control* control, ggufmill_error** error);

/* ---- importance files ---- */

/* An importance file that is open for reading. */
typedef struct ggufmill_importance ggufmill_importance;

GGUFMILL_API ggufmill_status ggufmill_importance_open(const ggufmill_context* context, const char* path,
                                                      ggufmill_importance** importance, ggufmill_error** error);
GGUFMILL_API void ggufmill_importance_free(ggufmill_importance* importance);

/* Returns {files, datasets, chunks, entries: [{name, columns, parts}]} without reading weights. */
GGUFMILL_API ggufmill_status ggufmill_importance_list(const ggufmill_importance* importance, char** json,
                                                      ggufmill_error** error);

/* Reads the weights of the entry with this number, from 0: `parts` times `columns`, which is `count`. */
GGUFMILL_API ggufmill_status ggufmill_importance_weights(const ggufmill_importance* importance, size_t index,
                                                         float* into, uint64_t count, ggufmill_error** error);

/* ---- former names of operations ---- */

/* `options` has the options of the operation but for the function's parameters. A failure stores no result.
 * ggufmill_compare() returns {report, warnings}, and takes `imatrix` for `importance`; ggufmill_edit() takes `values`
 * for `set`. Functions of open models call the operation with the path that the model was opened with. */
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"verify\", ...)")
GGUFMILL_API ggufmill_status ggufmill_verify(const ggufmill_context* context, const char* path, const char* options,
                                             ggufmill_control* control, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"compare\", ...)")
GGUFMILL_API ggufmill_status ggufmill_compare(const ggufmill_context* context, const char* a, const char* b,
                                              const char* options, ggufmill_control* control, char** json,
                                              ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"hash\", ...)")
GGUFMILL_API ggufmill_status ggufmill_hash(const ggufmill_context* context, const char* path, const char* options,
                                           ggufmill_control* control, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"edit\", ...)")
GGUFMILL_API ggufmill_status ggufmill_edit(const ggufmill_context* context, const char* path, const char* options,
                                           ggufmill_control* control, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"types\", ...)")
GGUFMILL_API ggufmill_status ggufmill_types(const ggufmill_context* context, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"inspect\", ...)")
GGUFMILL_API ggufmill_status ggufmill_model_describe(const ggufmill_model* model, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"inspect\", ...)")
GGUFMILL_API ggufmill_status ggufmill_model_statistics(const ggufmill_model* model, const char* tensor,
                                                       const char* options, ggufmill_control* control, char** json,
                                                       ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"models_page\", ...)")
GGUFMILL_API ggufmill_status ggufmill_models_page(const ggufmill_model* const* models, size_t count, const char* path,
                                                  const char* options, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"name_of\", ...)")
GGUFMILL_API ggufmill_status ggufmill_model_name(const ggufmill_model* model, const char* options, char** name,
                                                 ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"name\", ...)")
GGUFMILL_API ggufmill_status ggufmill_parse_name(const char* name, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"imatrix_show\", ...)")
GGUFMILL_API ggufmill_status ggufmill_importance_describe(const ggufmill_context* context, const char* path,
                                                          char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"imatrix_merge\", ...)")
GGUFMILL_API ggufmill_status ggufmill_importance_merge(const ggufmill_context* context, const char* options,
                                                       char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"kernels\", ...)")
GGUFMILL_API ggufmill_status ggufmill_kernels(const ggufmill_context* context, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"check_module\", ...)")
GGUFMILL_API ggufmill_status ggufmill_check_module(const ggufmill_context* context, const char* path,
                                                   const char* options, ggufmill_control* control, char** json,
                                                   ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"recipe_from\", ...)")
GGUFMILL_API ggufmill_status ggufmill_recipe_from(const ggufmill_model* model, char** yaml, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"recipe_check\", ...)")
GGUFMILL_API ggufmill_status ggufmill_recipe_check(const ggufmill_model* model, const char* recipe, char** json,
                                                   ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"recipe_diff\", ...)")
GGUFMILL_API ggufmill_status ggufmill_recipe_diff(const ggufmill_model* model, const char* a, const char* b,
                                                  char** json, ggufmill_error** error);

/* `kind` is "recipes", "objectives", "exclusions" or "architectures"; for the list also "functions", those that
 * architecture maps can call. */
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"recipes\", ...), \"objectives\", \"exclusions\" or \"architectures\"")
GGUFMILL_API ggufmill_status ggufmill_catalog(const char* kind, char** json, ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"recipe\", ...), \"objectives\", \"exclusions\" or \"architecture\"")
GGUFMILL_API ggufmill_status ggufmill_catalog_text(const char* kind, const char* name, char** yaml,
                                                   ggufmill_error** error);
GGUFMILL_DEPRECATED("use ggufmill_call(context, \"schema\", ...)")
GGUFMILL_API ggufmill_status ggufmill_schema(const char* kind, char** json, ggufmill_error** error);

#ifdef __cplusplus
}
#endif

#endif
