#pragma once
// The destination of an upload: finds, starts, and resumes the upload of a file.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/io/output_store.h"
#include "pipeline/io/remote/bucket.h"
#include "pipeline/io/remote/upload_record.h"

namespace ggufmill::remote {

// An object to be written: a multipart upload, or one request if the file is nothing but a header.
struct Target {
  Bucket bucket;
  ObjectToken token;
  std::string upload{};                    // its identifier; empty: one request
  std::unique_ptr<UploadRecord> record{};  // null: one request, or an upload that machines share
  std::vector<StoredPart> held{};          // parts that need not be uploaded: the server has them, or will
};

// Identity of files that belong to no plan, such as reports.
inline constexpr const char* kNoPlan = "file";

bool is_one_request(const StoredFile& file);
Settings settings_of(const StoreOptions& options);
// Returns the path of the record of an upload; empty if there is no folder for it. `identity` and `folder` are those of
// StoreOptions.
std::string record_path(const Bucket& bucket, const std::string& identity, const std::string& folder = {});
// Exit code 2 if the object exists and may not be replaced.
Status check_object(const Bucket& bucket, bool overwrite, const Settings& settings);
// Aborts an upload that an earlier process has left.
Status abort_left(const Bucket& bucket, const RecordText& record);

// Starts the upload of a file, in place of one that an earlier run has left. An old upload that the server refuses to
// abort is no reason not to start a new one; `warn` reports it.
Result<Target> start_target(const StoredFile& file, const StoreOptions& options,
                            const std::function<void(std::string)>& warn);
// Resumes an upload, with the parts that both its record and the bucket have. Exit code 6 if it does not exist.
Result<Target> resume_target(const StoredFile& file, const StoreOptions& options);
// Returns the parts that both the record and the bucket have; nullopt if the upload does not exist.
Result<std::optional<std::vector<StoredPart>>> held_parts(const Bucket& bucket, const RecordText& record,
                                                          const Settings& settings);
// Removes parts that have another size than they must have.
void erase_foreign(std::vector<StoredPart>& parts, std::uint64_t file_bytes);
// Error of an upload that does not exist any more.
Error upload_is_gone(const std::string& path);

// Calls `open` for the first file, then for the others, several at a time: of two runs that write the same files, one
// is refused at the first and the other gets them all. On an error, `opened` has the targets that could be opened.
Result<std::vector<Target>> for_all_targets(std::span<const StoredFile> files,
                                            const std::function<Result<Target>(const StoredFile&)>& open,
                                            std::vector<std::optional<Target>>& opened);

}  // namespace ggufmill::remote
