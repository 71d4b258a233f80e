#pragma once
// Metadata values as users write them.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"

namespace ggufmill {

// A scalar or a list whose type is yet to be found.
struct WrittenValue {
  enum class Kind { kScalar, kList, kOther };  // other: a map or nothing, which no value is
  Kind kind = Kind::kScalar;
  std::string text{};    // of a scalar
  bool is_text = false;  // a scalar in quotes: no number, no boolean
  std::vector<WrittenValue> items{};
  Origin origin{};
};

// What a node of a configuration file holds.
WrittenValue written_value(const ConfigNode& node);

// The value that `written` stands for:
//   true, false     bool
//   7, -7           the type of `before` where it is an integer or float that holds it; else the first of uint32,
//   int32,
//                   uint64, int64 that does
//   0.5             the type of `before` where it is a float; else float32
//   other texts, and whatever is in quotes: string
//   [..]            array of the element type that holds all; of `before`'s element type where that is an array
// `before` is the value the key has now; null: none.
Result<MetadataValue> value_of(const WrittenValue& written, const MetadataValue* before);

// The same as a given type: a metadata type name, followed by [] for arrays of it, [][] for arrays of arrays.
Result<MetadataValue> value_of(const WrittenValue& written, std::string_view type, const Origin& type_origin = {});

// The fields of a value with its type, and the value that they stand for: {type: uint64, value: 5}.
std::vector<FieldSpec> typed_value_fields();
Result<MetadataValue> typed_value_of(const ConfigNode& map);

}  // namespace ggufmill
