#pragma once
// Scheme hf for outputs.

#include "pipeline/io/store_scheme.h"

namespace ggufmill::remote {

// Files of repositories of the Hugging Face hub. The hub wants the checksum of a file before its bytes, so outputs are
// complete local files, in the folder that upload_record.h names, until they are uploaded: all of a run in one commit.
const StoreScheme& hub_store();

}  // namespace ggufmill::remote
