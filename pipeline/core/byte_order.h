#pragma once
// Byte-order conversion of tensor data.

#include <cstddef>
#include <span>

#include "pipeline/core/types.h"

namespace ggufmill {

// Swaps the bytes of every multi-byte word (TypeInfo::fields) in complete rows of `columns` elements, in place. For
// types without row headers, `rows` may be any complete blocks. Swapping twice restores the original bytes. Bytes after
// the last complete row or block are left unchanged. Pure; thread-safe for disjoint memory.
void swap_words(const TypeInfo& type, std::uint64_t columns, std::span<std::byte> rows);

// Swaps every word of `width` bytes (1, 2, 4 or 8) in `bytes`, in place.
void swap_words(std::size_t width, std::span<std::byte> bytes);

// Returns true if rows of this type can be swapped. Those of foreign types can if their module describes the words.
bool can_swap(const TypeInfo& type);

}  // namespace ggufmill
