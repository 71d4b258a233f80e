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
  std::vector<WrittenValue> items{};
  Origin origin{};
};

// Converts a node of a configuration file.
WrittenValue written_value(const ConfigNode& node);

// Returns the metadata value of `written`:
//   true, false     bool
//   7, -7           the type of `before` if that is an integer or float type (an error if the number does not fit);
//   else
//                   the first of uint32, int32, uint64, int64 that can represent the number
//   0.5             the type of `before` if that is a float type; else float32
//   other text, and all quoted text: string
//   [..]            array of an element type that can represent all items; if `before` is an array, its element type is
//                   preferred by the same rules
// `before` is the current value of the key, or null if there is none.
Result<MetadataValue> value_of(const WrittenValue& written, const MetadataValue* before);

// Returns the value as a given type: a metadata type name, followed by [] for an array or [][] for an array of arrays.
Result<MetadataValue> value_of(const WrittenValue& written, std::string_view type, const Origin& type_origin = {});

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
