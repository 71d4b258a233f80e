#pragma once
// The types that a target chooses among: those that a user names, or the defaults for the columns of a tensor.

#include <cstdint>
#include <vector>

#include "stages/quantize/target.h"

namespace ggufmill {

// Return the default candidates (TypeFacts::candidate) for rows of a multiple of kWideColumns values, and for other
// rows: every size from 2 to 8 bits, by size. IQ types for tensors without importance, and the smallest IQ types in any
// case, are used only on request.
inline constexpr std::uint64_t kWideColumns = 256;
std::vector<const TypeInfo*> wide_candidates();
std::vector<const TypeInfo*> narrow_candidates();

// Returns, for each place in `open`, the first place whose tensor shares its type by the `groups` of a target.
Result<std::vector<std::size_t>> first_of_groups(const TargetOptions& options, const Model& model,
                                                 const std::vector<std::size_t>& open);

// Returns the candidates for each tensor in `open`, whose blocks may not fit its rows. Tensors that share a type have
// the same candidates. Fails with exit code 2 if no candidate fits the rows of a tensor.
using Candidates = std::vector<const TypeInfo*>;
Result<std::vector<Candidates>> candidates_of(const TargetOptions& options, const Model& model,
                                              const std::vector<std::size_t>& open);

}  // namespace ggufmill
