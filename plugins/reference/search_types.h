#pragma once
// The search kernels.

#include <array>
#include <cstddef>

#include "plugins/abi/ggufmill_search.h"

namespace ggufmill::reference {

inline constexpr std::size_t kSearchCount = 21;
extern const std::array<ggufmill_search_kernel, kSearchCount> kSearches;

}  // namespace ggufmill::reference
