#pragma once
// Named lists of types that are excluded from the candidates, such as the types without a fast implementation in a
// backend. The lists are data, in configs/exclusions/*.yaml; users can start from a copy of one.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/fields.h"

namespace ggufmill {

struct Exclusion {
  std::string name{};
  std::string description{};             // what the types have in common
  std::string source{};                  // reference for the list
  std::vector<const TypeInfo*> types{};  // with those of the modules that are loaded
  std::vector<std::string> modules{};    // kernel modules all of whose types are excluded
  std::string file{};                    // path it was read from; empty: built in
};

// Returns a built-in list by name, or reads one from a file by path. `asked` is the position for error messages. The
// list contains pointers into `types`.
Result<Exclusion> find_exclusion(const std::string& name_or_path, const Origin& asked, const Types& types);
FieldSpec exclusion_fields();  // fields of an exclusion file

// An exclusion list embedded at build time.
struct BuiltInExclusion {
  std::string_view name, text;
};
std::span<const BuiltInExclusion> built_in_exclusions();  // sorted by name

}  // namespace ggufmill
