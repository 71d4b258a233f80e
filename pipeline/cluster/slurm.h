#pragma once
// Slurm: parts are an array, and the seal a job that depends on it: on the success of all parts, or, of a matrix, on
// their end. Its own commands are called; nothing of it is linked.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

// What was handed to Slurm at one time.
struct Submission {
  std::string parts_id;  // of the array; empty: none was needed
  std::string indices;   // of the array
  std::string seal_id;
};
// DIR/engine.json: all of them, oldest first. None where nothing was submitted. Exit code 4 for what is malformed.
Result<std::vector<Submission>> read_submissions(const ClusterArray& array);

// What the array's tasks and the seal run: bash.
std::string part_script(const ClusterArray& array, const std::string& program);
std::string seal_script(const ClusterArray& array, const std::string& program);
// sbatch and its arguments. `after`: the array that the seal waits for; empty: none.
std::vector<std::string> parts_command(const ClusterArray& array, const std::vector<std::size_t>& parts);
std::vector<std::string> seal_command(const ClusterArray& array, const std::string& after);

// The parts, if any, and the seal. `program`: this one's path, which all nodes have to see. Exit code 6 where sbatch is
// not there or refuses; nothing is left in the queue then.
Result<Submission> submit_to_slurm(const ClusterArray& array, const std::vector<std::size_t>& parts,
                                   const std::string& program);

// What squeue knows of the array now.
struct SlurmTask {
  std::string state, reason;  // "RUNNING"; "NodeDown"
  bool is_active() const;     // waits or runs, and will without anybody's help
};
struct SlurmView {
  std::map<std::size_t, SlurmTask> parts;  // of the last submission that has the part
  std::optional<SlurmTask> seal;           // of the last submission
  bool is_active() const;
};
// Exit code 6 where squeue is not there or Slurm does not answer.
Result<SlurmView> look_at_slurm(const ClusterArray& array);
// All submissions.
Status cancel_in_slurm(const ClusterArray& array);

}  // namespace ggufmill
