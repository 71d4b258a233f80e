#pragma once
// Checks of a model that is made from a checkpoint.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"
#include "stages/huggingface/chosen_map.h"
#include "stages/huggingface/map/tensor_map.h"

namespace ggufmill::huggingface {

struct ConvertedModel {
  const ChosenMap& chosen;
  const Model& model;
  const TokenizerMetadata& tokenizer;
  const std::vector<MissingPart>& missing;            // according to the map
  const std::vector<std::string>& present;            // the checkpoint's tensors, as the map's rules see them
  const std::map<std::string, std::string>& sources;  // checkpoint's names of the model's tensors
};

// Checks that the model is complete, by what its map requires and by what llama.cpp's loader does. Exit code 4: one
// error for all missing tensors, and one for all wrong shapes; with `allow_missing`, warnings. What
// llama.cpp loads nevertheless, or may load, is only a warning. `warnings` may be those of the model.
Status check_complete(const ConvertedModel& made, std::vector<std::string>& warnings);

// Checks that all texts of the metadata are UTF-8. JSON escapes can contain half of a surrogate pair, which has no
// UTF-8 encoding. RWKV tokens may be arbitrary bytes.
Status check_texts(const ConvertedModel& made);

// Checks that the embedding has one row per token and as many columns as config.json specifies. Models that do not
// generate text may read narrower features.
Status check_embedding(const ConvertedModel& made, std::vector<std::string>& warnings);

// Checks that tensors of the part have weights: config.json can describe a projector or a draft whose weights were
// removed from the checkpoint. A draft shares the tensors outside of layers with the text model.
Status check_weights(const ChosenMap& chosen, const std::vector<MappedTensor>& tensors);

}  // namespace ggufmill::huggingface
