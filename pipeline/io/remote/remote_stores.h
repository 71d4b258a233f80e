#pragma once
// The schemes s3 and hf for outputs.

#include "pipeline/io/shared_uploads.h"
#include "pipeline/io/store_scheme.h"

namespace ggufmill::remote {

// Objects in buckets. Files on this machine describe what interrupted runs have left (upload_record.h).
const StoreScheme& s3_store();

// Uploads to buckets that several machines share. A chunk is a part of a multipart upload. The identifiers of the
// uploads are in StoreOptions::records.
const SharedUploads& s3_uploads();

// Files of repositories of the Hugging Face hub. The hub wants the checksum of a file before its bytes, so outputs are
// complete local files, in the folder that upload_record.h names, until they are uploaded: all of a run in one commit.
const StoreScheme& hub_store();

}  // namespace ggufmill::remote
