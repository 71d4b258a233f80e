#pragma once
// Scheme s3 for outputs.

#include "pipeline/io/shared_uploads.h"
#include "pipeline/io/store_scheme.h"

namespace ggufmill::remote {

// Objects in buckets. Files on this machine describe what interrupted runs have left (upload_record.h).
const StoreScheme& s3_store();

// Uploads to buckets that several machines share. A chunk is a part of a multipart upload. The identifiers of the
// uploads are in StoreOptions::records.
const SharedUploads& s3_uploads();

}  // namespace ggufmill::remote
