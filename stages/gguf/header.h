#pragma once
// The header of a GGUF file, which is everything except tensor data: reads it, and lays out a new file of version 3.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/core/stage.h"
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

// Reads only what precedes the list of tensors, with the errors of read_header().
Result<Metadata> read_metadata(const ByteSource& file);

// Contents of one file, in order: metadata entries, and the tensors [first, last) of the model.
struct FileContent {
  std::string path;
  std::vector<const MetadataEntry*> metadata;
  std::size_t first = 0;
  std::size_t last = 0;
  bool big_endian = false;
  bool is_bare = false;  // no tensors, and no padding after the metadata
};

// Lays out a file: the header, padded to `alignment`, then each tensor, also padded. `alignment` must be valid and
// equal to general.alignment in `content`. Sums are checked for overflow. Fails with exit code 2 if the file exceeds
// 2^63 - 1 bytes, if rows are not a multiple of the block size, and for keys and names that could not be read back.
Result<OutputFile> lay_out_file(const Model& model, const FileContent& content, std::uint64_t alignment);

// Returns the size of a tensor's data in its output type, before padding. Fails with exit code 2.
Result<std::uint64_t> tensor_bytes(const Tensor& tensor);

}  // namespace ggufmill::gguf
