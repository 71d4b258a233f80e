#pragma once
// Reads everything of a GGUF file except tensor data.

#include <cstdint>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/io/io.h"
#include "stages/gguf/byte_reader.h"

namespace ggufmill::gguf {

// A tensor and, for error messages, the byte offset of its description.
struct DescribedTensor {
  std::string name;
  Shape shape;
  const TypeInfo* type = nullptr;
  Extent data;  // its source is not set yet
  std::uint64_t described_at = 0;
};

struct Header {
  Encoding encoding;
  std::uint64_t alignment = 0;
  Metadata metadata;
  std::vector<DescribedTensor> tensors;  // in file order; names are unique
};

// Reads only the header. Time and memory depend on the size of the header, not of the file. Checks everything that
// readers of tensor data rely on. Fails with exit code 4 for invalid input, 6 if the system cannot read the file.
Result<Header> read_header(const ByteSource& file, const Types& types);

}  // namespace ggufmill::gguf
