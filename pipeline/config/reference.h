#pragma once
// What people read about a field table.

#include <string>
#include <vector>

#include "pipeline/config/fields.h"

namespace ggufmill {

// For `--help`: `spec`, when it has a name, and every key below it with its kind, default, sentence and example,
// indented by depth.
std::string field_help(const FieldSpec& spec);

// The same as one Markdown table, a row a key, keys as paths ("outputs[].quantize.tensors[].match").
std::string field_reference_markdown(const FieldSpec& spec);

// What is wrong with a field table itself: a default or an example that fails its own lint, a field without a sentence,
// a required one without an example, a list or dictionary without its item. Tests keep this empty.
std::vector<Error> check_examples(const FieldSpec& spec);

}  // namespace ggufmill
