#pragma once
// Messages about batches.

#include <optional>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

// Notes the result for an output of a batch.
void note_cell(const BatchCell& cell, const Call& call);
// Returns the failures of a batch, including that of its report, combining outputs that failed for the same reason.
std::optional<Error> failure_of(const BatchReport& report);
std::optional<Error> failure_of(const std::vector<BatchCell>& cells);
// Returns how many outputs there are in each state.
Message counts_of(const BatchReport& report);

}  // namespace ggufmill
