#pragma once
// The source `huggingface`.

#include <memory>

#include "pipeline/config/registry.h"
#include "stages/huggingface/conversion.h"

namespace ggufmill {

namespace huggingface {
// The values of SourceOptions::class_defaults, which has no effect.
Form<bool> class_defaults_form();
}  // namespace huggingface

// `open` reads the headers of the weights.
std::unique_ptr<Source> make_huggingface_source(huggingface::SourceOptions options, CheckpointOpener open);
// Returns the spec of `huggingface: FOLDER`, or `huggingface: {path: FOLDER, outtype: q8_0, ...}`.
SourceSpec huggingface_source(CheckpointOpener open);

}  // namespace ggufmill
