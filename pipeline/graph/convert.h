#pragma once
// What is done with the rows of a slab: swap, decode once, check, encode for every target, check what was written.

#include <cstdint>
#include <span>

#include "pipeline/graph/flight.h"

namespace ggufmill {

// Reads the importance weights of the slabs' matrices. Once, before the first tile. Exit code 4 when their number is
// not the tensor's columns.
Status load_importance(Flight& flight);

// What a worker needs to convert tiles: kTileBytes, twice where errors are measured.
std::size_t scratch_bytes(const Plan& plan);

// Converts tile `tile` (0 <= tile < flight.tiles) of a flight whose source bytes are there. Different tiles may be
// converted at the same time. `scratch`: scratch_bytes(plan) of F32, the caller's own. `files`: of the source model,
// for messages. Exit code 4, with the place, for values that are not finite and for values too large for the target
// type; 1 for a kernel that fails.
Status convert_tile(Flight& flight, std::uint32_t tile, std::span<float> scratch, const std::vector<SourceFile>& files);

}  // namespace ggufmill
