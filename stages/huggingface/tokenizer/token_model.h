#pragma once
// The model in tokenizer.json: converts the text of one piece to ids of the vocabulary.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"

namespace ggufmill::huggingface {

// Thread-safe.
using TokenModel = std::function<Result<std::vector<std::uint32_t>>(std::string_view piece)>;

// Supports BPE, WordPiece and WordLevel models; any other is an error. `file` must outlive the result. Errors: merges
// of tokens that are not in the vocabulary, random merges (dropout); when called, unknown text if the model has no
// unknown token.
Result<TokenModel> make_token_model(GGUFMILL_OUTLIVES_RESULT const TokenizerJson& file);

// Returns the error of make_token_model() for the first merge of tokens that are not in the vocabulary.
Status check_merges(const TokenizerJson& file);

}  // namespace ggufmill::huggingface
