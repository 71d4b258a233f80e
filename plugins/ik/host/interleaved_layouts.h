#pragma once
// The arrangement of the interleaved types of ik_llama.cpp.

#include "pipeline/core/interleaved.h"

namespace ggufmill {

// Returns the layout of a plain type in groups of `rows` rows; aborts the program for other types than those that
// ik_type_family() lists as interleaved.
InterleavedLayout ik_interleaved_layout(std::string_view plain, std::uint32_t rows);

}  // namespace ggufmill
