#pragma once
// A GGUF model read whole, for tests of small files.

#include <map>
#include <string>

#include "pipeline/core/metadata.h"

namespace ggufmill::golden {

struct TensorBytes {
  std::string type;
  std::string bytes;
  bool operator==(const TensorBytes&) const = default;
};

struct ModelFile {
  std::vector<MetadataEntry> metadata;
  std::map<std::string, TensorBytes> tensors;  // by name
  std::uint64_t misaligned = 0;                // tensors that do not start at a multiple of general.alignment
};

// Of the file or, for the first of a shard set, all of them. Throws std::runtime_error.
ModelFile read_model(const std::string& path);

}  // namespace ggufmill::golden
