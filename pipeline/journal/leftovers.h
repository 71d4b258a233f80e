#pragma once
// Files that interrupted runs have left next to the outputs of a plan.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill {

struct Leftover {
  std::string path;    // a temporary file, a journal, or a claim
  std::string output;  // the output it belongs to
  std::uint64_t bytes = 0;
  bool of_this_plan = false;  // false: of another plan
  bool is_in_use = false;     // a run is writing it now
  std::string other_since;    // for a journal of another plan: how that plan differs
  std::string cluster_job;    // folder of the cluster job that writes the output; empty if none does
};

struct Leftovers {
  std::vector<Leftover> files;  // sorted by path
  // Number of units recorded in this plan's journal, if it exists; they are not verified.
  std::optional<std::uint64_t> units_done;
  std::uint64_t units = 0;  // of the plan
  // The run of this plan was killed after some of its files had got their names: files of these names are its own.
  bool is_half_published = false;

  bool is_running() const;  // a run of this plan is in progress
  bool can_resume() const;  // the next run of this plan would resume
  // Folders of the cluster jobs that write any of the outputs, whether or not their parts are running now. Sorted.
  std::vector<std::string> cluster_jobs() const;
};
// Finds leftover files; changes nothing. Files that cannot be examined are ignored.
Leftovers find_leftovers(const Plan& plan);
// Removes the files, except those that a run is writing now. Exit code 2 if a cluster job writes the outputs; 6 if a
// file cannot be removed.
Status discard(const Leftovers& leftovers);
// Returns an error (exit code 2) for each cluster job that writes any of the outputs: nobody else may.
std::vector<Error> claimed_by_jobs(const Leftovers& leftovers);

}  // namespace ggufmill
