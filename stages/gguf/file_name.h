#pragma once
// File names by GGUF's naming convention: BaseName-SizeLabel-FineTune-Version-Encoding-Type-Shard.gguf (ggml,
// docs/gguf.md, MIT).

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/core/model.h"

namespace ggufmill::gguf {

// Parts as they are written; nothing where there is none.
struct FileName {
  std::optional<std::string> sidecar;  // "mmproj", "mtp"
  std::string base_name;
  std::optional<std::string> size_label, finetune, version, encoding;
  std::optional<std::string> type;   // "LoRA", "vocab"
  std::optional<std::string> shard;  // "00003-of-00009"
};

// Of the last part of a path; nothing where it is not of the convention, which wants a base name, a size and a version.
std::optional<FileName> parse_file_name(std::string_view path);

// The name that a model's metadata makes, with version v1.0 and `size_label` where it says none; `encoding`: a recipe's
// name. Spaces and slashes become dashes.
std::string file_name_of(const Model& model, std::string_view size_label, std::string_view encoding);

}  // namespace ggufmill::gguf
