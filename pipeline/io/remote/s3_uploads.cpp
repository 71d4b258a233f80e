#include <algorithm>
#include <set>

#include "pipeline/io/remote/multipart_store.h"
#include "pipeline/io/remote/remote_stores.h"

namespace ggufmill::remote {
namespace {

// A file that machines write together, and its upload.
struct Shared {
  Bucket bucket;
  std::optional<RecordText> record;  // none: the upload has not been started
};

Result<Shared> find_shared(const StoredFile& file, const StoreOptions& options) {
  BOOST_OUTCOME_TRY(Bucket bucket, Bucket::open(file.path));
  auto record = load_record(record_path(bucket, options.identity, options.records));
  if (record && (record->upload.empty() || record->bytes != file.bytes)) record.reset();
  return Shared{std::move(bucket), std::move(record)};
}

// Returns the parts of an upload that have the right size; nullopt if the upload does not exist.
Result<std::optional<std::vector<StoredPart>>> list_shared(const Shared& shared, const StoredFile& file,
                                                           const StoreOptions& options) {
  if (!shared.record) return std::nullopt;
  BOOST_OUTCOME_TRY(auto parts, shared.bucket.list_parts(shared.record->upload, settings_of(options)));
  if (parts) erase_foreign(*parts, file.bytes);
  return parts;
}

class S3Uploads final : public SharedUploads {
 public:
  std::uint64_t chunk_bytes(std::uint64_t file_bytes) const override { return part_bytes(file_bytes); }
  Status start(std::span<const StoredFile> files, const StoreOptions& options) const override;
  Status abort(std::span<const StoredFile> files, const StoreOptions& options) const override;
  Result<std::unique_ptr<SharedUpload>> join(std::vector<StoredFile> files, const StoreOptions& options,
                                             std::span<const UploadedChunk> known,
                                             std::function<void(const UploadedChunk&)> uploaded) const override;
  Result<std::vector<UploadedChunk>> list(std::span<const StoredFile> files,
                                          const StoreOptions& options) const override;
  Status vouch(std::span<const StoredFile> files, std::span<const UploadedChunk> chunks,
               const StoreOptions& options) const override;
};

Status S3Uploads::start(std::span<const StoredFile> files, const StoreOptions& options) const {
  std::vector<std::optional<Target>> opened;
  const auto start_one = [&](const StoredFile& file) -> Result<Target> {
    BOOST_OUTCOME_TRY(const Shared shared, find_shared(file, options));
    BOOST_OUTCOME_TRY(const auto parts, list_shared(shared, file, options));
    if (parts) return Target{shared.bucket, shared.record->token};
    return start_target(file, options, [](const std::string&) {});  // it is left to expire
  };
  const auto targets = for_all_targets(files, start_one, opened);
  if (targets) return ok();
  for (auto& one : opened)
    if (one && one->record && one->bucket.abort(one->upload, {})) one->record->remove();
  return targets.error();
}

Status S3Uploads::abort(std::span<const StoredFile> files, const StoreOptions& options) const {
  for (const StoredFile& file : files) {
    if (is_one_request(file)) continue;
    BOOST_OUTCOME_TRY(const Bucket bucket, Bucket::open(file.path));
    const std::string path = record_path(bucket, options.identity, options.records);
    if (!load_record(path)) continue;
    BOOST_OUTCOME_TRY(const auto record, UploadRecord::open(path));
    BOOST_OUTCOME_TRY(abort_left(bucket, record->text()));
    record->remove();
  }
  return ok();
}

Result<std::unique_ptr<SharedUpload>> S3Uploads::join(std::vector<StoredFile> files, const StoreOptions& options,
                                                      std::span<const UploadedChunk> known,
                                                      std::function<void(const UploadedChunk&)> uploaded) const {
  PartMap map(files, options.writes);
  BOOST_OUTCOME_TRY(const std::uint64_t memory, memory_for_parts(map, options));
  const std::set<UploadedChunk> trusted(known.begin(), known.end());
  const auto join_one = [&](const StoredFile& file) -> Result<Target> {
    const auto number = static_cast<std::size_t>(&file - files.data());
    const auto parts = map.of_file(number);
    BOOST_OUTCOME_TRY(const Shared shared, find_shared(file, options));
    Target target{shared.bucket, ObjectToken()};
    for (const std::size_t part : parts)
      if (const PartSpan& span = map.parts()[part]; span.data == 0)  // another machine's
        target.held.push_back({span.number, "", span.bytes});
    if (target.held.size() == parts.size()) return target;
    BOOST_OUTCOME_TRY(auto listed, list_shared(shared, file, options));
    if (!listed) return upload_is_gone(file.path);
    for (StoredPart& part : *listed)
      if (map.parts()[parts[part.number - 1]].data != 0 && trusted.contains({number, part.number - 1, part.etag}))
        target.held.push_back(std::move(part));
    target.upload = shared.record->upload;
    return target;
  };
  std::vector<std::optional<Target>> opened;
  BOOST_OUTCOME_TRY(auto targets, for_all_targets(files, join_one, opened));
  auto upload = std::make_unique<MultipartStore>(std::move(files), std::move(map), std::move(targets), options,
                                                 settings_of(options), memory);
  upload->on_upload(std::move(uploaded));
  upload->keep();
  return std::unique_ptr<SharedUpload>(std::move(upload));
}

Result<std::vector<UploadedChunk>> S3Uploads::list(std::span<const StoredFile> files,
                                                   const StoreOptions& options) const {
  std::vector<UploadedChunk> chunks;
  for (std::size_t file = 0; file < files.size(); ++file) {
    if (is_one_request(files[file])) continue;
    BOOST_OUTCOME_TRY(const Shared shared, find_shared(files[file], options));
    BOOST_OUTCOME_TRY(auto parts, list_shared(shared, files[file], options));
    if (!parts) continue;
    for (StoredPart& part : *parts) chunks.push_back({file, part.number - 1, std::move(part.etag)});
  }
  return chunks;
}

Status S3Uploads::vouch(std::span<const StoredFile> files, std::span<const UploadedChunk> chunks,
                        const StoreOptions& options) const {
  for (std::size_t file = 0; file < files.size(); ++file) {
    if (is_one_request(files[file])) continue;
    BOOST_OUTCOME_TRY(const Bucket bucket, Bucket::open(files[file].path));
    BOOST_OUTCOME_TRY(const auto record, UploadRecord::open(record_path(bucket, options.identity, options.records)));
    const std::uint64_t size = part_bytes(files[file].bytes);
    for (const UploadedChunk& chunk : chunks) {
      if (chunk.file != file) continue;
      const auto number = static_cast<unsigned>(chunk.number + 1);
      const std::uint64_t bytes = std::min(size, files[file].bytes - chunk.number * size);
      const auto noted = record->text().parts.find(number);
      if (noted != record->text().parts.end() && noted->second.etag == chunk.tag) continue;
      BOOST_OUTCOME_TRY(record->add_part({number, chunk.tag, bytes}));
    }
  }
  return ok();
}

}  // namespace

const SharedUploads& s3_uploads() {
  static const S3Uploads uploads;
  return uploads;
}

}  // namespace ggufmill::remote
