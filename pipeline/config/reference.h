#pragma once
// Human-readable documentation of a field table.

#include <string>
#include <vector>

#include "pipeline/config/fields.h"

namespace ggufmill {

// Returns one Markdown table with a row for `spec`, if it has a name, and for every key below it; keys are paths
// ("outputs[].quantize.tensors[].match").
std::string field_reference_markdown(const FieldSpec& spec);

// Returns the errors in a field table itself: a default or an example that fails its own lint, a field without a
// description, a required field without an example, a list or dictionary without its item. Tests check that there are
// none.
std::vector<Error> check_examples(const FieldSpec& spec);

}  // namespace ggufmill
