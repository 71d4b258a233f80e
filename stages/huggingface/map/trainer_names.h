#pragma once
// Words that training frameworks add to the names of a model's tensors.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {

// Returns true if a map has a rule for a tensor of this name.
using NameTest = std::function<bool(const std::string&)>;

// Returns the words of a name, which dots separate.
std::vector<std::string_view> words_of(std::string_view name);

// Returns the first word of all names, if it is the same; otherwise an empty text.
std::string common_first_word(const std::vector<std::string>& names);

// Returns the name without the words for which `is_one` holds.
template <class IsOne>
std::string without(std::string_view name, const IsOne& is_one) {
  std::string result;
  for (const std::string_view word : words_of(name)) {
    if (is_one(word)) continue;
    if (!result.empty()) result += '.';
    result += word;
  }
  return result;
}

// Returns the name without the words that trainers wrap around modules, wherever they stand: `_orig_mod` of
// torch.compile and the like.
std::string without_wrappers(std::string_view name);

// Removes the words that trainers wrap around modules from the names: `_orig_mod` of torch.compile and the like
// wherever they stand, and `module.`, `model.`, `base_model.model.` and the like before all names if the map then knows
// more of them. Returns a note on what was removed for each word; empty if nothing was. Leaves all names as they are if
// two would become equal. Exit code 4 for values of config.json that do not fit the map's rules.
Result<std::vector<std::string>> remove_trainer_names(const Architecture& architecture, const Facts& facts,
                                                      std::vector<NamedTensor>& tensors);

}  // namespace ggufmill::huggingface
