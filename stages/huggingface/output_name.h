#pragma once
// The default output names of llama.cpp's convert_hf_to_gguf.py (gguf-py/gguf/utility.py).

#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "stages/huggingface/model_id.h"

namespace ggufmill::huggingface {

enum class OutputContent {
  kModel,
  kVocabulary,
  kDraftHead,
  kProjector,
  kAdapter
};  // kDraftHead, kProjector: the outputs of --mtp and --mmproj

// Returns "Some-Model-1.7M-Chat-v0.3-BF16.gguf", "...-vocab.gguf", "mtp-....gguf", "mmproj-....gguf" or
// "...-LoRA.gguf". `file_type`:
// "BF16", "Q8_0". Exit code 4 if a part of the id is not allowed in a file name, for example because of a slash or a
// control character.
Result<std::string> default_output_name(const ModelId& id, std::string_view file_type, OutputContent content);

// Returns `name` with {}, {ftype} and {outtype} replaced by the file type, and {FTYPE} and {OUTTYPE} by the file type
// in upper case; {{ and }} are literal braces. Exit code 2 for other fields.
Result<std::string> fill_output_name(std::string_view name, std::string_view file_type);

}  // namespace ggufmill::huggingface
