#pragma once
// Metadata values as users write them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"

namespace ggufmill {

// A scalar or list of a type still to be determined.
struct WrittenValue {
  enum class Kind { kScalar, kList, kOther };  // other: a map or null, neither of which is a value
  Kind kind = Kind::kScalar;
  std::string text{};    // text of a scalar
  bool is_text = false;  // quoted scalar: neither number nor boolean
  // The text is that of an argument or a file, where a list is written within it: ["a", "b"] (JSON) or [a, b] (YAML).
  bool may_be_list = false;
  std::vector<WrittenValue> items{};
  Origin origin{};
};

// Converts a node of a configuration file.
WrittenValue written_value(const ConfigNode& node);

// Returns the value as its spelling suggests:
//   true, false     bool
//   7, -7           the first of uint32, int32, uint64, int64 that can represent the number
//   0.5             float32
//   other text, and all quoted text: string
//   [..]            array of an element type that can represent all items; in an argument, only if it is JSON
Result<MetadataValue> value_of(const WrittenValue& written);

// Returns the value as a given type: a metadata type name or a short one (u32, str), followed by [] for an array or
// [][] for an array of arrays; [str] and [[u32]] are other ways to write arrays. Strings must be UTF-8, floats finite.
Result<MetadataValue> value_of(const WrittenValue& written, std::string_view type, const Origin& type_origin = {});

// Returns the value of a metadata key. It has the type of `before`, the current value of the key, if there is one; else
// the type with which the key is known (known_type()); else the one that its spelling suggests. Errors name the key.
Result<MetadataValue> value_for(const std::string& key, const WrittenValue& written, const MetadataValue* before);

// The forms of a value as users write it: a scalar, and a list of any items.
Form<WrittenValue> written_scalar(std::string doc);
Form<WrittenValue> written_list(std::string doc);

// A value with an explicit type: {type: uint64, value: 5}.
struct TypedValue {
  std::optional<std::string> type{};
  std::optional<WrittenValue> value{};
  Origin origin{}, type_origin{};  // of the map, and of `type`
};
Fields<TypedValue> typed_value_fields();
Result<MetadataValue> value_of(const TypedValue& typed);

}  // namespace ggufmill
