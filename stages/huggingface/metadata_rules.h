#pragma once
// Entries of the metadata as an architecture's map says.

#include <vector>

#include "pipeline/core/metadata.h"
#include "stages/huggingface/architecture.h"

namespace ggufmill::huggingface {

// A key as files have it: with the architecture before it, unless it begins with "general." or "tokenizer.".
std::string whole_key(const std::string& key, const std::string& architecture);

// Sets an entry for each rule that holds; one that is there keeps its place. Empty texts and lists are no entries.
// Lists are of int32, float32, bool or string, whatever the rule's type is. Exit code 4 for a value that is needed and
// not there, or is not of its type.
Status set_metadata(const std::vector<MetadataRule>& rules, const Architecture& architecture, const Facts& facts,
                    Metadata& into);

// Puts the first of the map's other names that holds in the place of its name.
Status choose_name(Architecture& architecture, const Facts& facts);

// What the rules make of the tokenizer's options.
Result<TokenizerOptions> tokenizer_options(const TokenizerRules& rules, const Facts& facts);

}  // namespace ggufmill::huggingface
