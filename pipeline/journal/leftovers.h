#pragma once
// What runs that ended early have left beside the outputs of a plan.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill {

struct Leftover {
  std::string path;    // a temporary file, or a journal
  std::string output;  // that it belongs to
  std::uint64_t bytes = 0;
  bool of_this_plan = false;  // else of another one
  bool is_in_use = false;     // a run is writing it now
  std::string other_since;    // of another plan's journal: in what it differs
};

struct Leftovers {
  std::vector<Leftover> files;  // sorted by path
  // What the journal of this plan says, if there is one; units_done are not checked.
  std::optional<std::uint64_t> units_done;
  std::uint64_t units = 0;  // of the plan

  bool is_running() const;  // a run of this plan, now
  bool can_go_on() const;   // the next run of this plan would
};
// Looks; changes nothing. What cannot be looked at is not there.
Leftovers find_leftovers(const Plan& plan);
// Removes them, but for what a run is writing now. Exit code 6.
Status discard(const Leftovers& leftovers);

// Bytes on the disk that a run of the plan would take over.
std::uint64_t reserved_before(const std::string& output, const std::string& identity);

}  // namespace ggufmill
