#pragma once
// The elements of a metadata array, one after the other: a vocabulary is long, and a list of its words takes many times
// its bytes.

#include <functional>

#include "pipeline/core/metadata.h"

namespace ggufmill {

// Calls `take` for one element after the other, until it returns false; not at all when `array` is none, and not for
// what is malformed and what follows it. Whether all elements could be had that were asked for.
bool for_each_item(const MetadataValue& array, const std::function<bool(MetadataValue item)>& take);

}  // namespace ggufmill
