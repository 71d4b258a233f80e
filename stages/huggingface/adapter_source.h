#pragma once
// The source `lora`: an adapter in the format of PEFT.

#include <memory>

#include "pipeline/config/registry.h"
#include "pipeline/core/adapter.h"
#include "stages/huggingface/conversion.h"

namespace ggufmill {

// Returns the spec of `lora: {adapter: FOLDER, base: FOLDER, outtype: f16}`. `open` reads the headers of the weights.
SourceSpec adapter_source(CheckpointOpener open);

}  // namespace ggufmill
