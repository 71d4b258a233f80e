#pragma once
// The source `lora`: an adapter in the format of PEFT.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/config/registry.h"
#include "pipeline/core/adapter.h"
#include "stages/huggingface/conversion.h"

namespace ggufmill {

// Types of the matrices of an adapter.
inline constexpr OutType kAdapterTypes[] = {OutType::kF32, OutType::kF16, OutType::kBf16, OutType::kQ8_0,
                                            OutType::kAuto};
std::vector<std::string> adapter_type_names();  // "f32", ...

// Returns the spec of `lora: {adapter: FOLDER, base: FOLDER, outtype: f16}`. `open` reads the headers of the weights;
// `maps`: see huggingface_source().
SourceSpec adapter_source(CheckpointOpener open, std::vector<std::string> maps = {});

}  // namespace ggufmill
