#pragma once
// The header of one safetensors file.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/types.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::safetensors {

inline constexpr std::uint64_t kLongestHeader = 100'000'000;  // as the format's library has it
inline constexpr std::size_t kMostDimensions = 8;

struct HeaderTensor {
  std::string name;
  const TypeInfo* type = nullptr;
  std::vector<std::uint64_t> dims;  // the slowest first
  std::uint64_t begin = 0;          // in the file
  std::uint64_t bytes = 0;
};

struct Header {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<HeaderTensor> tensors;  // by name
};

// Reads and checks a header: every tensor is of a known type, has the bytes of its shape, and the data of all are the
// rest of the file, without a gap. Exit code 4, with the byte or the tensor.
Result<Header> read_header(const ByteSource& file);

}  // namespace ggufmill::safetensors
