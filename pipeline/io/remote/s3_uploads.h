#pragma once
// Uploads to buckets that several machines share.

#include "pipeline/io/shared_uploads.h"

namespace ggufmill::remote {

// A chunk is a part of a multipart upload. The identifiers of the uploads are in StoreOptions::records.
const SharedUploads& s3_uploads();

}  // namespace ggufmill::remote
