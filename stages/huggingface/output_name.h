#pragma once
// The names that convert_hf_to_gguf.py of llama.cpp gives to its outputs (gguf-py/gguf/utility.py).

#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "stages/huggingface/model_id.h"

namespace ggufmill {

enum class OutputContent { kModel, kVocabulary, kDraftHead };  // the last: what --mtp leaves

// "Some-Model-1.7M-Chat-v0.3-BF16.gguf", "...-vocab.gguf", "mtp-....gguf". `file_type`: "BF16", "Q8_0". Exit code
// 4 where a part of the id cannot be in a file's name: a slash, a control character.
Result<std::string> default_output_name(const ModelId& id, std::string_view file_type, OutputContent content);

// `name` with the file type in place of {}, {ftype} and {outtype}, in capitals of {FTYPE} and {OUTTYPE}; {{ and }} are
// brackets. Exit code 2 for others.
Result<std::string> fill_output_name(std::string_view name, std::string_view file_type);

}  // namespace ggufmill
