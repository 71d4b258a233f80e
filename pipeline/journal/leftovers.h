#pragma once
// What runs that ended early have left beside the outputs of a plan.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill {

struct Leftover {
  std::string path;    // a temporary file, a journal, or a claim
  std::string output;  // that it belongs to
  std::uint64_t bytes = 0;
  bool of_this_plan = false;  // else of another one
  bool is_in_use = false;     // a run is writing it now
  std::string other_since;    // of another plan's journal: in what it differs
  std::string cluster_job;    // the folder of the cluster job that writes the output; empty: none does
};

struct Leftovers {
  std::vector<Leftover> files;  // sorted by path
  // What the journal of this plan says, if there is one; units_done are not checked.
  std::optional<std::uint64_t> units_done;
  std::uint64_t units = 0;  // of the plan

  bool is_running() const;  // a run of this plan, now
  bool can_go_on() const;   // the next run of this plan would
  // Folders of the cluster jobs that write any of the outputs, whether or not their parts are running now. Sorted.
  std::vector<std::string> cluster_jobs() const;
};
// Looks; changes nothing. What cannot be looked at is not there.
Leftovers find_leftovers(const Plan& plan);
// Removes them, but for what a run is writing now. Exit code 2 where a cluster job writes the outputs; 6.
Status discard(const Leftovers& leftovers);
// An error (exit code 2) for each cluster job that writes any of the outputs: nobody else may.
std::vector<Error> claimed_by_jobs(const Leftovers& leftovers);

// Whether a process has locked the file to write to it.
bool is_locked(const std::string& path);

// Bytes on the disk that a run of the plan would take over.
std::uint64_t reserved_before(const std::string& output, const std::string& identity);

}  // namespace ggufmill
