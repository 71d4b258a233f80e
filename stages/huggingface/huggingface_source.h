#pragma once
// The source `huggingface`.

#include <memory>

#include "pipeline/config/registry.h"
#include "stages/huggingface/conversion.h"

namespace ggufmill {

// `open` reads the headers of the weights.
std::unique_ptr<Source> make_huggingface_source(huggingface::SourceOptions options, CheckpointOpener open);
// Returns the spec of `huggingface: FOLDER`, or `huggingface: {path: FOLDER, outtype: q8_0, ...}`.
SourceSpec huggingface_source(CheckpointOpener open);

}  // namespace ggufmill
