#pragma once
// Byte-order conversion of tensor data.

#include <cstddef>
#include <span>

#include "pipeline/core/types.h"

namespace ggufmill {

// Swaps the bytes of every multi-byte word (TypeInfo::words) of the complete blocks in `blocks`, in place. Swapping
// twice restores the original bytes. Bytes after the last complete block are left unchanged. Pure; thread-safe for
// disjoint memory.
void swap_words(const TypeInfo& type, std::span<std::byte> blocks);

// Swaps every word of `width` bytes (1, 2, 4 or 8) in `bytes`, in place.
void swap_words(std::size_t width, std::span<std::byte> bytes);

// Returns true if blocks of this type can be swapped. Blocks of foreign types cannot, as the layout of their words is
// unknown.
bool can_swap(const TypeInfo& type);

}  // namespace ggufmill
