#pragma once
// Human-readable documentation of a field table.

#include <string>
#include <vector>

#include "pipeline/config/fields.h"

namespace ggufmill {

// Returns the text for `--help`: `spec`, if it has a name, and every key below it with its kind, default, description
// and example, indented by depth.
std::string field_help(const FieldSpec& spec);

// Returns the same as one Markdown table with a row per key; keys are paths ("outputs[].quantize.tensors[].match").
std::string field_reference_markdown(const FieldSpec& spec);

// Returns the errors in a field table itself: a default or an example that fails its own lint, a field without a
// description, a required field without an example, a list or dictionary without its item. Tests check that there are
// none.
std::vector<Error> check_examples(const FieldSpec& spec);

}  // namespace ggufmill
