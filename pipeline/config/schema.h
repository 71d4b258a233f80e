#pragma once
// JSON Schema of a field table, for editors and people.

#include <string>

#include "pipeline/config/fields.h"

namespace ggufmill {

// Returns the JSON Schema (draft 2020-12) of a field table, pretty-printed, with a newline at the end. It accepts
// everything that the lint accepts, except paths and patterns that look like numbers.
std::string json_schema(const FieldSpec& fields);

}  // namespace ggufmill
