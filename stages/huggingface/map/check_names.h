#pragma once
// Tensors that a map cannot take: names that no rule matches, names beyond the counts of config.json, and codes of
// quantized weights.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/active_rules.h"
#include "stages/huggingface/map/trainer_names.h"

namespace ggufmill::huggingface {

// Checks names. Those that a map cannot take usually have one cause, and then other errors have it, too: exit code 4
// with one error for each cause. Succeeds if there is a single one without a known cause, which whoever converts it
// reports. `where` is for messages: the checkpoint's folder.
Status check_names(const Architecture& architecture, const Facts& facts, const ActiveRules& rules,
                   const std::vector<NamedTensor>& tensors, const std::string& where);

// Returns one error for each cause of names that no rule matches: an adapter that is not merged, a shard of FSDP, a
// word before or inside names, a second model, tensors that do not belong to the model. `unknown`: these tensors. A
// single one has an error only if it is a part of an adapter or of a shard.
// `where` is for messages: the checkpoint's folder. `is_known`: whether the map would take a tensor of a name of the
// checkpoint, before the map renames it.
std::vector<Error> unknown_name_errors(const Architecture& architecture, const std::string& where,
                                       const std::vector<NamedTensor>& tensors,
                                       const std::vector<const NamedTensor*>& unknown, const NameTest& is_known);

// Returns what to do for a tensor that no rule matches.
std::string help_for_unknown(const Architecture& architecture, const std::string& where);

// Finds codes of quantized weights in a layout that was not decoded, where a map expects weights.
// Exit code 4, one error for all, if matrices of integers, or of 8-bit floats with scales beside them, stand where the
// map has rules for weights: under the weight's name, or in place of X.weight under a name without a rule in the same
// module. `has_rule`: whether the map has a rule for the name; `is_weight`: whether one makes a tensor of numbers.
// `where` is for messages: the checkpoint's folder.
Status check_no_codes(const std::vector<NamedTensor>& tensors, const NameTest& has_rule, const NameTest& is_weight,
                      const std::string& where);

}  // namespace ggufmill::huggingface
