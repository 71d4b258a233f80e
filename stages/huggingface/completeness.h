#pragma once
// Whether a model made from a checkpoint is complete: by what its map requires, and by what llama.cpp's loader does.

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
  std::uint64_t tokens = 0;                           // of the tokenizer
  const std::vector<MissingPart>& missing;            // according to the map
  const std::vector<std::string>& present;            // the checkpoint's tensors, as the map's rules see them
  const std::map<std::string, std::string>& sources;  // checkpoint's names of the model's tensors
};

// Exit code 4: one error for all missing tensors, and one for all wrong shapes; with `allow_missing`, warnings. What
// llama.cpp loads nevertheless, or may load, is only a warning. `warnings` may be those of the model.
Status check_complete(const ConvertedModel& made, std::vector<std::string>& warnings);

// Returns true if the vocabulary size is stated in config.json rather than a class default. Exit code 4 for values that
// do not fit the map's rule.
Result<bool> vocabulary_size_is_stated(const ChosenMap& chosen);

}  // namespace ggufmill::huggingface
