#pragma once
// Checks a GGUF file against the specification, beyond what every reader relies on.

#include <string>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill::gguf {

struct Finding {
  bool is_required = true;  // false: a recommendation
  std::string where;        // a key, a tensor or the file name
  std::string what;         // for example "is missing"
  std::string rule;         // the requirement in the specification
};

// Checks required keys by architecture, types and ranges of known keys, the form of keys and names, the shapes of
// tensors against the metadata, and the naming convention. Returns findings in file order. Source: docs/gguf.md of ggml
// (MIT). Where it requires uint64, uint32 is accepted, as the specification permits.
std::vector<Finding> check_specification(const std::string& path, const Model& model);

}  // namespace ggufmill::gguf
