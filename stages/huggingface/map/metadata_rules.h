#pragma once
// Sets metadata entries according to an architecture's map.

#include <vector>

#include "pipeline/core/metadata.h"
#include "stages/huggingface/map/architecture.h"

namespace ggufmill::huggingface {

// Returns the full key: the key prefixed with the architecture, unless it begins with "general.", "tokenizer.",
// "xielu." or "diffusion."; without its first character if that is a dot.
std::string whole_key(const std::string& key, const std::string& architecture);

// Sets an entry for each rule whose condition is true; an existing entry keeps its position. Empty texts and lists
// yield no entry. Lists have elements of int32, float32, bool or string, regardless of the rule's type. Exit code 4 if
// a required value is missing or has the wrong type.
Status set_metadata(const std::vector<MetadataRule>& rules, const Architecture& architecture, const Facts& facts,
                    Metadata& into);

// Replaces the map's name with the first of its other names whose condition is true.
Status choose_name(Architecture& architecture, const Facts& facts);

// Evaluates the rules to the tokenizer's options.
Result<TokenizerOptions> tokenizer_options(const TokenizerRules& rules, const Facts& facts);

}  // namespace ggufmill::huggingface
