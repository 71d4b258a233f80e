#pragma once
// What the kernels are meant to reach.

#include <cstdint>
#include <optional>
#include <string_view>

namespace ggufmill::bench {

// For an encoder how many times faster than ggml's kernel; for a decoder the part of memcpy's speed on the bytes it
// writes. Nothing where no target is set: other ISAs than x86-64-v4 and, with half of its targets, x86-64-v3; other
// types.
std::optional<double> target(std::string_view isa, std::uint32_t operation, std::string_view type, bool importance);

}  // namespace ggufmill::bench
