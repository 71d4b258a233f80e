#pragma once
// Names of tensors that a map cannot take: those that no rule matches, and those beyond the counts of config.json.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/active_rules.h"

namespace ggufmill::huggingface {

// Such names usually have one cause, and then other errors have it, too: exit code 4 with one error for each cause.
// Succeeds if there is a single one without a known cause, which whoever converts it reports. `where` is for messages:
// the checkpoint's folder.
Status check_names(const Architecture& architecture, const Facts& facts, const ActiveRules& rules,
                   const std::vector<NamedTensor>& tensors, const std::string& where);

}  // namespace ggufmill::huggingface
