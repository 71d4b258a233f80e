#pragma once
// Cuts a plan into parts: contiguous ranges of units with nearly equal cost.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/plan/costs.h"

namespace ggufmill {

// Returns N + 1 unit numbers: the first unit of each part, and the end. N is `parts`, or the number of units if that is
// smaller, so that no part is empty. Each cut is placed where it divides the costs best. If an output has several files
// (shards), a cut may move a little to a boundary between two of them, so that parts write complete shards.
std::vector<std::size_t> cut_plan(const Plan& plan, const std::vector<double>& costs, std::size_t parts);

// Returns the default number of parts: one per 16 GiB of input, which is minutes of work; at most kMaxParts.
std::size_t usual_parts(const Plan& plan);

// Distributes the parts of one array over the plans so that the longest part is as short as possible. Each plan gets at
// least one part and at most one per unit. `parts` is the total number; 0 means the sum of the plans' default numbers,
// limited to kMaxParts. Fails with exit code 2 if there are fewer parts than plans.
Result<std::vector<std::size_t>> share_parts(const std::vector<Plan>& plans, std::size_t parts,
                                             const ImaginedMachine& machine = {});

}  // namespace ggufmill
