#pragma once
// A job: what is to be read, changed and written, and what that may use. What a Plan is made of.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/io_mode.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

struct Limits {
  std::uint64_t memory = 512ull << 20;  // bytes of all slabs under way
  unsigned threads = 0;                 // 0: as many as the machine gives this process
  unsigned nice = 0;                    // added to the niceness of the process
  std::optional<IoMode> io = {};        // none: by the size of the job
  bool memory_is_given = false;         // else it is at most a quarter of the machine's: see on_this_machine()

  static constexpr unsigned kMostThreads = 1024;
  static constexpr unsigned kMostNice = 19;
};

// Limits of so many threads (0: as many as the machine gives) and, where given, so much memory.
Limits limits_with(std::optional<std::uint64_t> memory, unsigned threads);

// The limits of a run here: where nothing is given, at most a quarter of the memory that this process may use.
// Everything that makes a plan asks this.
Limits on_this_machine(Limits limits);

// What is done with NaN and infinity in the source, and with quantized blocks whose scale is one of these.
enum class Nonfinite {
  kError,
  kZero,  // such a number, and all values of such a block, become 0
  kKeep,  // they are kept; what is quantized cannot hold them, which is an error
};
inline constexpr std::string_view kNonfiniteWords[] = {"error", "zero", "keep"};  // in that order

// What the user wants to be told about a run.
struct ReportRequest {
  bool error = false;      // measure what every converted tensor lost
  std::string json, html;  // where to write it; empty: not in this form
  bool matrices = false;   // of a measurement: likewise each matrix of tensors of three dimensions, such as an expert's
};

// How a job is brought to a cluster: what `ggufmill submit` asks of its engine.
struct ClusterOptions {
  enum class Engine { kSlurm, kNone };
  Engine engine = Engine::kSlurm;
  std::string folder;  // of the job; empty: the pipeline file's, with .job in place of .yaml
  unsigned parts = 0;  // 0: by what there is to read
  std::string partition, account, time, constraint;  // empty: the engine's own
  unsigned cpus = 0;                                 // of a part; 0: the engine's own
  std::uint64_t memory = 0;                          // bytes of a part; 0: the engine's own
  unsigned max_parallel = 0;                         // parts at once; 0: as many as there is room for
  std::vector<std::string> options;                  // further ones for the engine, as on its command line

  static constexpr unsigned kMostParts = 1000;  // Slurm's MaxArraySize is 1001 where nobody changed it
};

using StageList = std::vector<std::shared_ptr<const Stage>>;

struct JobOutput {
  std::shared_ptr<const Sink> sink;
  StageList stages;  // of this output alone
  Origin origin{};   // of the output in the pipeline file
  // An earlier output, its first file or its manifest: what it has of the same is taken from it. Empty: none.
  std::string reuse{};
};

struct Job {
  std::string file;  // the pipeline file's path, for messages
  std::shared_ptr<const Source> source;
  StageList stages;                // shared by all outputs
  std::vector<JobOutput> outputs;  // at least one
  Limits limits;
  std::optional<ReportRequest> report;  // no paths: beside the first output
  Nonfinite nonfinite = Nonfinite::kError;
  std::optional<ClusterOptions> cluster;
  bool manifest = false;            // beside each output what it is made of, and checksums
  bool verify = false;              // an output that is there counts as unchanged once its bytes were compared, too
  std::string trace;                // where the trace of a run goes; empty: none is wanted
  std::vector<std::string> inputs;  // files that the job was made of, beside those that its parts read: never written
};

}  // namespace ggufmill
