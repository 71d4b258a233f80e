#pragma once
// A job: what to read, change and write, and the resources allowed for it. A Plan is made from a job.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/io_mode.h"
#include "pipeline/core/job_sections.h"
#include "pipeline/core/spool.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

struct Limits {
  std::optional<std::uint64_t> memory{};  // bytes of all slabs in flight; none: see memory_budget() in plan.h
  unsigned threads = 0;                   // 0: the number of CPUs available to this process
  unsigned nice = 0;                      // added to the niceness of the process
  std::optional<IoMode> io{};             // none: depends on the size of the job
  Spool spool{};                          // for outputs on object stores

  static constexpr std::uint64_t kDefaultMemory = 512ull << 20;
  static constexpr unsigned kMaxThreads = 1024;
  static constexpr unsigned kMaxNice = 19;
};

// The treatment of NaN and infinity in the source, and of quantized blocks with such a scale.
enum class Nonfinite {
  kError,
  kZero,  // such numbers, and all values of such blocks, become 0
  kKeep,  // kept as they are; an error for quantized targets, which cannot represent them
};
inline constexpr std::string_view kNonfiniteWords[] = {"error", "zero", "keep"};  // indexed by Nonfinite

// The reports and measurements that the user requests for a run.
struct ReportRequest {
  bool error = false;      // measure the error of every converted tensor
  std::string json, html;  // output paths; empty: not in this format
  bool matrices = false;   // in a measurement: also the error of each matrix of 3-D tensors (experts)
};

inline constexpr std::string_view kClusterEngines[] = {"slurm", "none"};

// Resources that `ggufmill submit` requests from the engine of a cluster.
struct ClusterOptions {
  enum class Engine { kSlurm, kNone };  // named by kClusterEngines
  Engine engine = Engine::kSlurm;
  std::string folder;  // of the job; empty: the pipeline file's name with .job instead of .yaml
  unsigned parts = 0;  // 0: depends on the amount of data to read
  std::string partition, account, time, constraint;  // empty: the engine's default
  unsigned cpus = 0;                                 // per part; 0: the engine's default
  std::uint64_t memory = 0;                          // bytes per part; 0: the engine's default
  unsigned max_parallel = 0;                         // parts running at the same time; 0: no limit
  std::vector<std::string> options;                  // further options for the engine's command line

  static constexpr unsigned kMaxParts = 1000;  // Slurm's default MaxArraySize is 1001
};

using StageList = std::vector<std::shared_ptr<const Stage>>;

struct JobOutput {
  std::shared_ptr<const Sink> sink;
  StageList stages;                   // of this output only
  Origin origin{};                    // position of the output in the pipeline file
  std::optional<ModelPart> part{};    // none: the part that the source's options name
  std::optional<OutType> out_type{};  // likewise
  Origin part_origin{};               // position of these two in the pipeline file
  // Path of an earlier output (its first file or its manifest). Tensors that are unchanged are taken from it. Empty:
  // none.
  std::string reuse{};
  OutputSections sections{};  // of wings

  PartRequest request() const { return {part, out_type, part_origin}; }
};

struct Job {
  std::string file;    // path of the pipeline file, for messages
  std::string text{};  // of the pipeline file with everything resolved: parameters, `--set`, the matrix; empty: none
  std::shared_ptr<const Source> source;
  StageList stages;                // shared by all outputs; none of them sets a target
  std::vector<JobOutput> outputs;  // at least one
  Limits limits;
  std::optional<ReportRequest> report;  // without paths: written next to the first output
  Nonfinite nonfinite = Nonfinite::kError;
  std::optional<ClusterOptions> cluster;
  bool manifest = false;   // write a manifest with origin and checksums next to each output
  bool verify = false;     // compare the bytes before an existing output counts as unchanged
  std::string trace;       // path of the run's trace; empty: none
  JobSections sections{};  // of wings
  // Files that the job was made from, in addition to those that its parts read; never written.
  std::vector<std::string> inputs;
};

}  // namespace ggufmill
