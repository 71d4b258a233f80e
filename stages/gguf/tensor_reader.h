#pragma once
// Reads the descriptions of tensors and finds their places in the file.

#include <cstdint>
#include <vector>

#include "pipeline/core/model.h"
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

// `count` tensors, in order. Source offsets are as in the file: from the start of the data. Refused (exit code 4):
// more than four dimensions, 2^63 elements and more (zeros counted as ones), unknown types, rows that are no whole
// number of blocks, foreign types in big-endian files. Names are not compared with each other.
Result<std::vector<DescribedTensor>> read_tensors(ByteReader& in, std::uint64_t count, const Types& types);

// Makes source offsets absolute. Refused: a place that is unaligned, past the end, or overlaps another tensor's. Gaps
// and any order are accepted. `in` has read the last description.
Status place_tensors(const ByteReader& in, std::uint64_t alignment, std::vector<DescribedTensor>& tensors);

}  // namespace ggufmill::gguf
