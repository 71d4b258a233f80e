#pragma once
// Tensor data between byte orders.

#include <cstddef>
#include <span>

#include "pipeline/core/types.h"

namespace ggufmill {

// Swaps the bytes of every multi-byte word (TypeInfo::words) of the whole blocks in `blocks`, in place; twice is
// nothing. What is behind the last whole block is left alone. Pure and thread-safe for disjoint memory.
void swap_words(const TypeInfo& type, std::span<std::byte> blocks);

// Swaps every word of `width` bytes (1, 2, 4 or 8) in `bytes`, in place.
void swap_words(std::size_t width, std::span<std::byte> bytes);

// Whether blocks of this type can be swapped: not those of foreign types, whose words nobody has described.
bool can_swap(const TypeInfo& type);

}  // namespace ggufmill
