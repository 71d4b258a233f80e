#pragma once
// Submission to Slurm. The parts are an array job, and the seal is a job that depends on it: on the success of all
// parts or, for a matrix, on their termination. Slurm's own commands are called; its libraries are not linked.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

// One submission to Slurm.
struct Submission {
  std::string parts_id;  // id of the array; empty: none was needed
  std::string indices;   // task indices of the array
  std::string seal_id;
};
// Returns all submissions recorded in DIR/engine.json, oldest first; empty if nothing was submitted. Fails with exit
// code 4 if the file is malformed.
Result<std::vector<Submission>> read_submissions(const ClusterArray& array);

// Return the bash scripts that the array's tasks and the seal run.
std::string part_script(const ClusterArray& array, const std::string& program);
std::string seal_script(const ClusterArray& array, const std::string& program);
// Return the sbatch command lines. `after` is the id of the array that the seal waits for; empty: none.
std::vector<std::string> parts_command(const ClusterArray& array, const std::vector<std::size_t>& parts);
std::vector<std::string> seal_command(const ClusterArray& array, const std::string& after);

// Submits the parts, if any, and the seal. `program` is the path of this program, which must be visible on all nodes.
// Fails with exit code 6 if sbatch is missing or rejects a job; then nothing is left in the queue.
Result<Submission> submit_to_slurm(const ClusterArray& array, const std::vector<std::size_t>& parts,
                                   const std::string& program);

// The current state of a task as reported by squeue.
struct SlurmTask {
  std::string state, reason;  // for example "RUNNING", "NodeDown"
  bool is_active() const;     // true if it runs, or waits and will start without intervention
};
struct SlurmView {
  std::map<std::size_t, SlurmTask> parts;  // of the last submission that includes the part
  std::optional<SlurmTask> seal;           // of the last submission
  bool is_active() const;
};
// Queries squeue. Fails with exit code 6 if squeue is missing or fails, and with 75 if it does not end within a minute.
Result<SlurmView> look_at_slurm(const ClusterArray& array);
// Cancels all submissions of the array. Exit codes as for look_at_slurm(), and 4 as for read_submissions().
Status cancel_in_slurm(const ClusterArray& array);

}  // namespace ggufmill
