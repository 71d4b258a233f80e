#pragma once
// Reads all of one GGUF file that is not tensor data.

#include <cstdint>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/io/io.h"
#include "stages/gguf/byte_reader.h"

namespace ggufmill::gguf {

// A tensor and the byte offset of its description, for messages.
struct DescribedTensor {
  std::string name;
  Shape shape;
  const TypeInfo* type = nullptr;
  Extent data;  // its source is not known yet
  std::uint64_t described_at = 0;
};

struct Header {
  Encoding encoding;
  std::uint64_t alignment = 0;
  Metadata metadata;
  std::vector<DescribedTensor> tensors;  // in the order of the file; names unique
};

// Reads the header alone, in time and memory that follow its size, whatever the size of the file. Everything a later
// reader of the tensors' data relies on is checked. Exit code 4 for what is wrong, 6 when the system cannot read.
Result<Header> read_header(const ByteSource& file, const Types& types);

}  // namespace ggufmill::gguf
