#pragma once
// The parts of a checkpoint that become files of their own.

#include "pipeline/config/bound_fields.h"

namespace ggufmill::huggingface {

// kProjector: the encoders of images and sound, and what projects their output to the text model's embeddings, as
// convert_hf_to_gguf.py --mmproj writes them.
enum class ModelPart : std::uint8_t { kText, kProjector };

inline Form<ModelPart> model_part_form() {
  return word<ModelPart>({{"text", ModelPart::kText}, {"projector", ModelPart::kProjector}});
}

}  // namespace ggufmill::huggingface
