#pragma once
// The types that a target chooses among: those that a user names, or the defaults for the columns of a tensor.

#include <span>
#include <string_view>
#include <vector>

#include "stages/quantize/target.h"

namespace ggufmill {

// Names of the default candidates: for rows of a multiple of kWideColumns values, and for other rows.
inline constexpr std::uint64_t kWideColumns = 256;
std::span<const std::string_view> wide_candidates();
std::span<const std::string_view> narrow_candidates();

// Returns, for each place in `open`, the first place whose tensor shares its type by the `groups` of a target.
Result<std::vector<std::size_t>> first_of_groups(const TargetOptions& options, const Model& model,
                                                 const std::vector<std::size_t>& open);

// Returns the candidates for each tensor in `open`, whose blocks may not fit its rows. Tensors that share a type have
// the same candidates. Fails with exit code 2 if no candidate fits the rows of a tensor.
using Candidates = std::vector<const TypeInfo*>;
Result<std::vector<Candidates>> candidates_of(const TargetOptions& options, const Model& model,
                                              const std::vector<std::size_t>& open);

}  // namespace ggufmill
