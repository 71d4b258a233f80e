#pragma once
// Whether a GGUF file is as its specification wants it, beyond what every reader relies on.

#include <string>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill::gguf {

struct Finding {
  bool is_required = true;  // else a recommendation
  std::string where;        // a key, a tensor, the file's name
  std::string what;         // "is missing"
  std::string rule;         // what the specification wants
};

// Required keys by architecture, types and ranges of known keys, the form of keys and names, tensors' shapes against
// the metadata, the naming convention; in the order of the file. Source: docs/gguf.md of ggml (MIT); where it says
// uint64, uint32 is taken too, as it says itself.
std::vector<Finding> check_specification(const std::string& path, const Model& model);

}  // namespace ggufmill::gguf
