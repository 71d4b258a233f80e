#pragma once
// Values of a pipeline file as metadata values.

#include <string>

#include "pipeline/core/config_node.h"
#include "pipeline/core/metadata.h"

namespace ggufmill {

// The value that `node` stands for:
//   true, false         bool
//   7, -7               the type of `before` where it is an integer or float that holds it; else uint32, int32, uint64
//   or
//                       int64, the first that holds it
//   0.5                 the type of `before` where it is a float; else float32
//   anything else, and whatever is quoted: string
//   [..]                array of the element type that holds all; of `before`'s element type where that is an array
//   {type: T, value: V} V as T: a metadata type name, followed by [] for arrays of it, [][] for arrays of arrays
//   {file: PATH}        string: the bytes of the file, at most 1 GiB
// `before` is the value the key has now; null: none. Errors carry the position.
Result<MetadataValue> metadata_value_of(const ConfigNode& node, const MetadataValue* before);

}  // namespace ggufmill
