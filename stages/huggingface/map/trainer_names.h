#pragma once
// What training frameworks add to the names of a model's tensors, and names that a map does not know.

#include <functional>
#include <string>
#include <vector>

#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {

// Whether a map has a rule for a tensor of this name.
using NameTest = std::function<bool(const std::string&)>;

// Removes the words that trainers wrap around modules from the names: `_orig_mod` of torch.compile and the like
// wherever they stand, and `module.`, `model.`, `base_model.model.` and the like before all names if the map then knows
// more of them. Returns a note on what was removed for each word; empty if nothing was. Leaves all names as they are if
// two would become equal. Exit code 4 for values of config.json that do not fit the map's rules.
Result<std::vector<std::string>> remove_trainer_names(const Architecture& architecture, const Facts& facts,
                                                      std::vector<NamedTensor>& tensors);

// Returns one error for each cause of names that no rule matches: an adapter that is not merged, a word before or
// inside names, a second model, tensors that do not belong to the model. `unknown`: these tensors, at least two.
// `where` is for messages: the checkpoint's folder. `is_known`: whether the map would take a tensor of a name of the
// checkpoint, before the map renames it.
std::vector<Error> unknown_name_errors(const Architecture& architecture, const std::string& where,
                                       const std::vector<NamedTensor>& tensors,
                                       const std::vector<const NamedTensor*>& unknown, const NameTest& is_known);

// Returns what to do for a tensor that no rule matches.
std::string help_for_unknown(const Architecture& architecture, const std::string& where);

}  // namespace ggufmill::huggingface
