#pragma once
// What editors and people read about a field table.

#include <string>

#include "pipeline/config/fields.h"

namespace ggufmill {

// JSON Schema (draft 2020-12) of a field table, pretty-printed, ends with a newline. It takes all that the lint takes,
// but for paths and patterns that look like numbers.
std::string json_schema(const FieldSpec& fields);

}  // namespace ggufmill
