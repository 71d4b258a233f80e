#pragma once
// Reads the header of one safetensors file.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/types.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::safetensors {

inline constexpr std::uint64_t kMaxHeaderLength = 100'000'000;  // the limit of the reference library
inline constexpr std::size_t kMaxDimensions = 8;

struct HeaderTensor {
  std::string name;
  const TypeInfo* type = nullptr;
  std::vector<std::uint64_t> dims;  // slowest dimension first
  std::uint64_t begin = 0;          // offset in the file
  std::uint64_t bytes = 0;
};

struct Header {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<HeaderTensor> tensors;  // sorted by name
};

// Reads and checks a header: every tensor has a known type and the number of bytes that its shape requires, and the
// data of all tensors fill the rest of the file without gaps. Fails with exit code 4; the error names the byte or the
// tensor.
Result<Header> read_header(const ByteSource& file);

}  // namespace ggufmill::safetensors
