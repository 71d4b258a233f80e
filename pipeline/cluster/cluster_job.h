#pragma once
// A job that is executed in parts. Its folder is on a file system shared by all machines involved:
//
//   plan.json             the plan in its serialized form
//   job.json              how the plan is cut, and what else every part needs to know
//   engine.json           what was submitted to the engine (slurm.h)
//   log/                  output of the parts and the seal
//   parts/K.beat.json     progress of part K; changes while the part is alive
//   parts/K.done.json     part K is done; contains the checksums of its units
//   parts/K.measured.json measurements of part K, for the report
//   parts/K.edges         the edges of part K: its bytes in chunks that it does not own (edges.h)
//   parts/K.*.ATTEMPT     journal, edges, and uploaded chunks of an attempt at the part that is running or was
//                         interrupted
//   uploads/              identifiers of the uploads, if the outputs are objects of a bucket
//   seal.json             identifies the finished outputs
// Outputs that are files are written next to their targets as `.NAME.ggufmill-IDENTITY.ID`, each with a claim
// (output_claim.h) next to it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/graph/engine.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/shared_uploads.h"
#include "pipeline/journal/journal.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

struct ClusterJob {
  std::string folder;          // absolute, like all paths here
  std::string working_folder;  // base of the plan's relative paths
  std::string name;            // of the pipeline file, without folder and extension
  std::string identity;        // of the plan
  std::string id;              // distinguishes jobs of the same plan; letters and digits
  bool overwrite = false;
  std::vector<std::size_t> cuts;  // part K has the units [cuts[K], cuts[K + 1])
  std::vector<double> costs;      // of each part, in seconds of an assumed machine; see cut.h
  Limits limits;
  std::vector<std::string> kernel_directories;
  std::string isa;  // empty: the best one of each machine
  ClusterOptions options;
  // Set from the matrix (cluster_array.h) if the job belongs to one:
  std::string source;          // the source that it reads
  std::size_t first_part = 0;  // number of its part 0 in the array
  std::string array_folder;    // the matrix's folder; same as `folder` if there is no matrix

  std::size_t parts() const { return cuts.size() - 1; }
  UnitRange range(std::size_t part) const { return {cuts[part], cuts[part + 1]}; }
  // The suffix of the outputs' temporary file names. Every marker also records it, to show which job it belongs to.
  std::string key() const { return identity + "." + id; }
  std::string file(const std::string& inside) const { return folder + "/" + inside; }
  std::string part_file(std::size_t part, const std::string& ending) const;
};

// Returns the options for the stores of the job's outputs, without `writes`.
StoreOptions store_options_of(const ClusterJob& job, const Plan& plan);

// Writes job.json and plan.json. Called once, when the job is created; the folder must exist.
Status write_job(const ClusterJob& job, const Plan& plan);
// Returns an error (exit code 2) if somebody else may have changed the record of a job or a matrix in a folder: the
// record decides which programs and modules run for this user, and with which arguments. The rule is why_untrusted().
Status check_trusted(const std::string& folder);
// Loads the job in a folder. Fails with exit code 2 if there is no job in it or it is not trusted, and with 4 if a file
// is malformed or the job was made by another version of ggufmill.
Result<ClusterJob> load_job_folder(const std::string& folder);
// Returns true if the folder contains a job.
bool is_job_folder(const std::string& path);
// Loads the plan of a job and applies the job's limits. Fails with exit code 4 if the plan is malformed, does not
// belong to the job, or was written by another version of ggufmill.
Result<Plan> load_plan(const ClusterJob& job, const Types& types);

// The marker of a part that is done. The bytes it wrote may have been lost since; done_parts.h detects that.
struct DoneMarker {
  std::vector<JournalText::Record> units;  // all units of the part
  std::string host, isa;
  double seconds = 0;  // duration of the attempt that finished the part
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::size_t units_kept = 0;         // units reused from earlier attempts
  std::vector<std::uint64_t> inodes;  // of the output files it wrote to, in output order
  std::vector<UploadedChunk> chunks;  // if the outputs are uploads: those it wrote, instead of `inodes`
};
Status write_done(const ClusterJob& job, std::size_t part, const DoneMarker& marker);
// Returns nullopt if there is no marker, or if it does not belong to this job and part.
std::optional<DoneMarker> read_done(const ClusterJob& job, std::size_t part);
// Returns for each part whether a file with the name of its marker exists. Only lists the folder; does not read the
// markers.
std::vector<bool> parts_done(const ClusterJob& job);
// Removes the marker of a part. Succeeds if there is none.
Status undo(const ClusterJob& job, std::size_t part);

// The heartbeat of a part: its current status, rewritten periodically.
struct Heartbeat {
  enum class State { kRunning, kFailed, kStopped };
  State state = State::kRunning;
  std::string attempt, host;
  std::uint64_t count = 0;  // heartbeats of this attempt so far
  std::size_t units = 0;    // units of the part that are done
  std::uint64_t bytes_written = 0;
  int exit_code = 0;  // exit code and message of an attempt that ended with an error
  std::string error;
};
Status write_heartbeat(const ClusterJob& job, std::size_t part, const Heartbeat& heartbeat);
std::optional<Heartbeat> read_heartbeat(const ClusterJob& job, std::size_t part);
// Removes the heartbeat file, if any. Errors are ignored.
void remove_heartbeat(const ClusterJob& job, std::size_t part);

// Identifies the finished outputs, in output order. Sizes come from the plan; the device numbers of files are not
// compared, because they differ between machines.
struct SealMarker {
  std::vector<FileId> ids;
  bool is_finished = false;  // manifests and reports are written too
};
Status write_seal(const ClusterJob& job, const SealMarker& marker);
std::optional<SealMarker> read_seal(const ClusterJob& job);
// Returns for each output whether it has its final name: the file with the recorded inode and the planned size, or the
// recorded object, exists at that path.
std::vector<bool> files_named(const Plan& plan, const SealMarker& marker);

// Converts an exit code read from a file; returns kInternal if the number is not a known exit code.
ExitCode exit_code_of(std::uint64_t number);

}  // namespace ggufmill
