#pragma once
// Adapters as models: pairs of tensors NAME.lora_a and NAME.lora_b, whose product, scaled by alpha / rank, is added to
// the tensor NAME. Lets stages use adapters in a format that another folder implements.

#include <functional>
#include <string>
#include <string_view>

#include "pipeline/core/model.h"

namespace ggufmill {

inline constexpr std::string_view kLoraA = ".lora_a", kLoraB = ".lora_b";
inline constexpr std::string_view kLoraAlpha = "adapter.lora.alpha";

// Opens an adapter: a folder or a file. `base`: the folder of the base model's config.json, for formats that need it;
// empty if unknown.
using AdapterOpener = std::function<Result<Model>(const std::string& path, const std::string& base)>;

}  // namespace ggufmill
