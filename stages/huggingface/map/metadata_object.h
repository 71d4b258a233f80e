#pragma once
// The metadata of a GGUF file as the value rules of maps see it.

#include <boost/json/object.hpp>
#include <string_view>

#include "pipeline/core/metadata.h"

namespace ggufmill::huggingface {

// Returns a number, flag, text, or list of them as JSON; null for anything else, and for long lists. A float32 is the
// shortest number that is read as it.
boost::json::value json_of(const MetadataValue& value);
// Returns the metadata of an architecture as an object: attention.head_count is member head_count of attention.
boost::json::object object_of(const Metadata& metadata, std::string_view architecture);

}  // namespace ggufmill::huggingface
