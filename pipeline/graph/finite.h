#pragma once
// What must be finite: decoded values, and the scales of written blocks.

#include <cstddef>
#include <span>

#include "pipeline/core/types.h"

namespace ggufmill {

// Index of the first NaN or infinity; values.size() when there is none.
std::size_t first_not_finite(std::span<const float> values);

// Index of the first of `count` blocks (little-endian) with a scale that is NaN or infinite, as type.scales says where
// they lie; `count` when there is none. For F16 and other types of one element a block: the element itself.
std::size_t first_bad_block(const TypeInfo& type, const std::byte* blocks, std::size_t count);

// What is wrong with such a block: "NaN" or "infinity" of a number, "a scale that is not finite" of others.
const char* describe_bad_block(const TypeInfo& type, const std::byte* block);

}  // namespace ggufmill
