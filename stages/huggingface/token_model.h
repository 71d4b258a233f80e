#pragma once
// The model of tokenizer.json: the text of one piece becomes ids of its vocabulary.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/tokenizer_json.h"

namespace ggufmill {

// Thread-safe.
using TokenModel = std::function<Result<std::vector<std::uint32_t>>(std::string_view piece)>;

// Of a BPE, WordPiece or WordLevel model; any other is an error. `file` must outlive it. Errors: merges of tokens that
// are not in the vocabulary, merges at random; later, text that is unknown where nothing stands for the unknown.
Result<TokenModel> make_token_model(const TokenizerJson& file);

}  // namespace ggufmill
