#pragma once
// A job that is done in parts: the folder that it lives in, on a file system that all of its machines share.
//
//   plan.json             the plan in its written form
//   job.json              how it is cut, and what every part has to know beside
//   engine.json           what was handed to the engine (engine.h)
//   log/                  what the parts and the seal said
//   parts/K.beat.json     how far part K is; changes while it is alive
//   parts/K.done.json     part K is done: the checksums of its units
//   parts/K.measured.json what it measured, for the report
//   parts/K.hem           its bytes in chunks that it does not own (hems.h)
//   parts/K.*.ATTEMPT     journal and hem of an attempt at the part that goes on, or was ended early
//   seal.json             what the outputs are known by, once they are whole
// The outputs grow beside their targets, as `.NAME.ggufmill-IDENTITY.ID`, each with a claim (output_claim.h) beside it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/graph/engine.h"
#include "pipeline/io/output_store.h"
#include "pipeline/journal/journal.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

struct ClusterJob {
  std::string folder;          // absolute, as all paths here
  std::string working_folder;  // that relative paths of the plan begin at
  std::string name;            // of the pipeline file, without folder and ending
  std::string identity;        // of the plan
  std::string id;              // of this job among all of the plan, letters and digits
  bool overwrite = false;
  std::vector<std::size_t> cuts;  // part K has the units from cuts[K] to cuts[K + 1]
  std::vector<double> costs;      // of each part, in seconds of an imagined machine; see cut.h
  Limits limits;
  std::vector<std::string> kernel_directories;
  std::string isa;  // empty: the best of each machine
  ClusterOptions options;
  // Of a job of a matrix (cluster_array.h), which says them:
  std::string source;          // what it reads
  std::size_t first_part = 0;  // what its part 0 is called
  std::string array_folder;    // of the matrix; of any other job its own

  std::size_t parts() const { return cuts.size() - 1; }
  UnitRange range(std::size_t part) const { return {cuts[part], cuts[part + 1]}; }
  // What the temporary files of the outputs are named by, and every marker says that it is of.
  std::string key() const { return identity + "." + id; }
  std::string file(const std::string& inside) const { return folder + "/" + inside; }
  std::string part_file(std::size_t part, const std::string& ending) const;
};

// Both once, by whoever makes the job. The folder is there.
Status write_job(const ClusterJob& job, const Plan& plan);
// The job in a folder. Exit code 2 where there is none, 4 for what is malformed.
Result<ClusterJob> load_job_folder(const std::string& folder);
// Whether there is one in it.
bool is_job_folder(const std::string& path);
// Its plan, with the job's limits. Exit code 4 also for a plan of another version of ggufmill.
Result<Plan> load_plan(const ClusterJob& job, const Types& types);

// A part that is done. What it wrote may be gone since: done_parts.h finds that out.
struct DoneMarker {
  std::vector<JournalText::Record> units;  // each of the part's
  std::string host, isa;
  double seconds = 0;  // of the attempt that brought it to its end
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::size_t units_kept = 0;         // of earlier attempts
  std::vector<std::uint64_t> inodes;  // of the output files that it wrote to, in their order
};
Status write_done(const ClusterJob& job, std::size_t part, const DoneMarker& marker);
// None where there is no marker, or one that is not of this job and part.
std::optional<DoneMarker> read_done(const ClusterJob& job, std::size_t part);
// Of each part whether the name of its marker is there: a look at the folder, no more.
std::vector<bool> parts_done(const ClusterJob& job);
// Removes the marker. Nothing where there is none.
Status undo(const ClusterJob& job, std::size_t part);

// What a part says of itself, over and over.
struct Beat {
  enum class State { kRunning, kFailed, kStopped };
  State state = State::kRunning;
  std::string attempt, host;
  std::uint64_t count = 0;  // beats of this attempt
  std::size_t units = 0;    // done of the part
  std::uint64_t bytes_written = 0;
  int exit_code = 0;  // of one that failed, and why
  std::string error;
};
Status write_beat(const ClusterJob& job, std::size_t part, const Beat& beat);
std::optional<Beat> read_beat(const ClusterJob& job, std::size_t part);
// Where there is one, and it can be removed.
void remove_beat(const ClusterJob& job, std::size_t part);

// What the finished outputs are known by: inode and size, in order. (Device numbers are each machine's own.)
struct SealMarker {
  std::vector<std::uint64_t> inodes;
};
Status write_seal(const ClusterJob& job, const SealMarker& marker);
std::optional<SealMarker> read_seal(const ClusterJob& job);
// Of each output file whether it has its name.
std::vector<bool> files_named(const Plan& plan, const SealMarker& marker);

// What a failure's exit code in a file stands for; kInternal for a number that is none.
ExitCode exit_code_of(std::uint64_t number);

// This machine's name.
std::string host_name();

}  // namespace ggufmill
