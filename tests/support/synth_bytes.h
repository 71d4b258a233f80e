#pragma once
// The GGUF primitives that the synthetic files are made of. Little-endian hosts only.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/synth_model.h"

namespace ggufmill::synth {

static_assert(std::endian::native == std::endian::little);

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// Length as 64 bits, then the bytes.
void put_string(std::string& out, std::string_view text);

// Magic, version 3 and both counts.
void put_magic(std::string& out, std::uint64_t tensors, std::uint64_t metadata);

// One key, its type and its value.
void put_metadata(std::string& out, const MetadataSpec& entry);

// One tensor description; `offset` is relative to the data section.
void put_tensor(std::string& out, std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type_id,
                std::uint64_t offset);

}  // namespace ggufmill::synth
