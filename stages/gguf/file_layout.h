#pragma once
// Lays tensors and metadata out as one GGUF file of version 3.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/core/stage.h"

namespace ggufmill::gguf {

// What goes into one file: entries in order, and tensors [first, last) of the model in order.
struct FileContent {
  std::string path;
  std::vector<const MetadataEntry*> metadata;
  std::size_t first = 0;
  std::size_t last = 0;
  bool big_endian = false;
  bool is_bare = false;  // without tensors, and without zeros behind the metadata
};

// The header, padded to `alignment` (valid, and what general.alignment in `content` says), and every tensor's place:
// one after another, each padded. Sums are checked: an error (exit code 2) past 2^63 - 1 bytes, for rows that are no
// whole number of blocks of their type, and for keys and names that could not be read back.
Result<OutputFile> lay_out_file(const Model& model, const FileContent& content, std::uint64_t alignment);

// Bytes of a tensor's data as its `type` (not what it is in the source), before padding. Exit code 2.
Result<std::uint64_t> tensor_bytes(const Tensor& tensor);

}  // namespace ggufmill::gguf
