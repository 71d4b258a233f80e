#pragma once
// The source `diffusion`: models of images and video, and what ComfyUI-GGUF expects of their GGUF files.

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/checkpoint.h"

namespace ggufmill {
namespace diffusion {

struct SourceOptions {
  std::string path{};   // a safetensors file, an index, or a folder
  std::string model{};  // name of a family or its file; empty: found by the tensors
  Origin origin{};
};

}  // namespace diffusion

// Returns a source of the tensors under their own names, without the prefix of a file that contains other models too;
// those are omitted with a warning. Types follow tools/convert.py of ComfyUI-GGUF (Apache-2.0): BF16 stays, other
// floats become F16; vectors, tensors of up to 1024 values, and those that the family names are F32 if they were F32 or
// BF16. Tensors of more than four dimensions are F32, with the slowest dimensions merged. Metadata:
// general.architecture, general.quantization_version, general.file_type, and the dimensions of reshaped tensors as
// comfy.gguf.orig_shape.NAME. `open` reads the headers of the weights.
std::unique_ptr<Source> make_diffusion_source(diffusion::SourceOptions options, CheckpointOpener open);
// Returns the specification of `diffusion: PATH` or `diffusion: {path: PATH, model: NAME}`.
SourceSpec diffusion_source(CheckpointOpener open);

}  // namespace ggufmill
