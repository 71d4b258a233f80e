#pragma once
// Adapters as models: pairs of tensors NAME.lora_a and NAME.lora_b, whose product, scaled by alpha / rank, is added to
// the tensor NAME. Lets stages use adapters in a format that another folder implements.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

inline constexpr std::string_view kLoraA = ".lora_a", kLoraB = ".lora_b";
// llama.cpp looks up rows of this tensor's A by token, so that A is stored transposed.
inline constexpr std::string_view kLoraTransposed = "token_embd.weight";
inline constexpr std::string_view kLoraAlpha = "adapter.lora.alpha";

// The checkpoint that an adapter was trained for.
struct AdapterBase {
  std::string folder{};             // with its config.json; empty if unknown
  std::string architecture{};       // name of a map, or a file; empty: taken from config.json
  std::vector<std::string> maps{};  // folders and files of maps that are added to the built-in ones
};

// Opens an adapter: a folder or a file. `base` is for formats that need it.
using AdapterOpener = std::function<Result<Model>(const std::string& path, const AdapterBase& base)>;

}  // namespace ggufmill
