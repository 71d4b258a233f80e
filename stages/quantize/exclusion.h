#pragma once
// Named lists of types that a choice leaves out, such as those that a backend has no fast code for. Which there are is
// data, configs/exclusions/*.yaml; a copy of one is where a user starts.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/fields.h"

namespace ggufmill {

struct Exclusion {
  std::string name;
  std::string description;  // what the types have in common
  std::string source;       // where that is known from
  std::vector<const TypeInfo*> types;
  std::string file;  // that it was read from; empty: built in
};

// A built-in list by name, or a file by its path. `asked`: for messages. The list points into `types`.
Result<Exclusion> find_exclusion(const std::string& name_or_path, const Origin& asked, const Types& types);
FieldSpec exclusion_fields();  // of such a file

// A list embedded at build time.
struct BuiltInExclusion {
  std::string_view name, text;
};
std::span<const BuiltInExclusion> built_in_exclusions();  // sorted by name

}  // namespace ggufmill
