#pragma once
// Scheme s3 for outputs.

#include "pipeline/io/store_scheme.h"

namespace ggufmill::remote {

// Objects in buckets. What interrupted runs leave is described by files of this machine (upload_record.h).
const StoreScheme& s3_store();

}  // namespace ggufmill::remote
