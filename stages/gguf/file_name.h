#pragma once
// File names that follow GGUF's naming convention: BaseName-SizeLabel-FineTune-Version-Encoding-Type-Shard.gguf (ggml,
// docs/gguf.md, MIT).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill::gguf {

// Parts of a file name, unchanged; nullopt for missing ones.
struct FileName {
  std::optional<std::string> sidecar;  // "mmproj", "mtp"
  std::string base_name;
  std::optional<std::string> size_label, finetune, version, encoding;
  std::optional<std::string> type;   // "LoRA", "vocab"
  std::optional<std::string> shard;  // "00003-of-00009"
};

// Parses the last component of a path. Returns nullopt if it does not follow the convention, which requires a base
// name, a size and a version.
std::optional<FileName> parse_file_name(std::string_view path);

// The reasons why a name does not follow the convention.
struct NameFaults {
  std::vector<std::string> faults;  // "no version", "'UD' between the version and the encoding"; at least one
  // The parts that the name has all the same; the base name may be empty.
  FileName found;
  std::string better;  // a name with these parts that follows the convention; empty if a part has to be added by hand
};

// Returns the faults of a name that parse_file_name() does not accept.
NameFaults explain_file_name(std::string_view path);

// Returns the file name that follows from a model's metadata. Missing parts default to version v1.0 and `size_label`.
// `encoding` is the name of a recipe. Spaces and slashes become dashes.
std::string file_name_of(const Model& model, std::string_view size_label, std::string_view encoding);

}  // namespace ggufmill::gguf
