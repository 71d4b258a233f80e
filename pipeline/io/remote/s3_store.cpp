#include "pipeline/io/remote/remote_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/multipart_store.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/threads.h"

namespace ggufmill::remote {
namespace {

class S3Store final : public StoreScheme {
 public:
  std::string_view name() const override { return "s3"; }
  Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override;
  Status check_target(const std::string& path, bool overwrite) const override;
  void check_space(std::span<const StoredFile> files, const StoreOptions& options, Diagnostics& errors) const override;
  // Objects that were uploaded in parts have the time at which the upload was started, so nothing is known about them.
  std::optional<std::int64_t> touched_at(const std::string& path) const override;

  bool keeps_all() const override { return false; }
  std::string journal_path(const std::string& output, const std::string& identity) const override {
    const auto bucket = Bucket::open(output);
    return bucket ? record_path(bucket.value(), identity + std::string(kJournalEnd)) : "";
  }
  Result<std::unique_ptr<OutputStore>> attach(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override;
  std::string why_not_attachable(const StoredFile& file, const std::string& identity) const override;
  SealedFile find_sealed(const StoredFile& file, const std::string& identity, const FileId& id) const override;
  Status finish_publishing(std::span<const StoredFile> files, std::span<const FileId> ids,
                           const StoreOptions& options) const override;
  std::vector<UnfinishedFile> find_unfinished(std::span<const std::string> outputs,
                                              std::span<const std::string> endings) const override;
  Status remove_unfinished(const std::string& path) const override;
  const SharedUploads* shared_uploads() const override { return &s3_uploads(); }
};

Result<std::unique_ptr<OutputStore>> S3Store::create(std::vector<StoredFile> files, const StoreOptions& options) const {
  PartMap map(files, options.writes);
  BOOST_OUTCOME_TRY(const std::uint64_t memory, memory_for_parts(map, options));
  std::vector<std::optional<Target>> opened;
  std::mutex mutex;
  std::vector<std::string> warnings;
  const auto warn = [&](std::string warning) {
    const std::scoped_lock lock(mutex);
    warnings.push_back(std::move(warning));
  };
  const auto start_one = [&](const StoredFile& file) { return start_target(file, options, warn); };
  auto targets = for_all_targets(files, start_one, opened);
  if (!targets) {
    for (auto& one : opened)
      if (one && one->record && one->bucket.abort(one->upload, {})) one->record->remove();
    return targets.error();
  }
  auto store = std::make_unique<MultipartStore>(std::move(files), std::move(map), std::move(targets).value(), options,
                                                settings_of(options), memory);
  for (std::string& warning : warnings) store->add_warning(std::move(warning));
  return std::unique_ptr<OutputStore>(std::move(store));
}

Result<std::unique_ptr<OutputStore>> S3Store::attach(std::vector<StoredFile> files, const StoreOptions& options) const {
  PartMap map(files, options.writes);
  BOOST_OUTCOME_TRY(const std::uint64_t memory, memory_for_parts(map, options));
  std::vector<std::optional<Target>> opened;
  BOOST_OUTCOME_TRY(auto targets,
                    for_all_targets(
                        files, [&](const StoredFile& file) { return resume_target(file, options); }, opened));
  return std::unique_ptr<OutputStore>(std::make_unique<MultipartStore>(
      std::move(files), std::move(map), std::move(targets), options, settings_of(options), memory));
}

Status S3Store::check_target(const std::string& path, bool overwrite) const {
  BOOST_OUTCOME_TRY(const Bucket bucket, Bucket::open(path));
  return check_object(bucket, overwrite, {});
}

void S3Store::check_space(std::span<const StoredFile> files, const StoreOptions& options, Diagnostics& errors) const {
  for (const StoredFile& file : files)
    if (file.bytes > kMaxObjectBytes) {
      errors.add({ExitCode::kUsage, file.path,
                  fmt::format("the output has {}, but an object has at most {}", human_bytes(file.bytes),
                              human_bytes(kMaxObjectBytes)),
                  "", "write several files: shard_size"});
      return;
    }
  if (const auto memory = memory_for_parts(PartMap(files, options.writes), options); !memory)
    errors.add(memory.error());
  std::error_code ignored;
  // Records elsewhere: other machines will write the objects, with folders of their own.
  if (const std::string& folder = options.spool.folder;
      !folder.empty() && options.records.empty() && !fs::is_directory(folder, ignored))
    errors.add(usage_error(fmt::format("limits.spool: there is no folder {}", quoted_name(folder)), "create it"));
}

std::optional<std::int64_t> S3Store::touched_at(const std::string& path) const {
  const auto bucket = Bucket::open(path);
  const auto found = bucket ? bucket.value().find({}) : std::nullopt;
  if (!bucket || !found || !found.value()) return {};
  const StoredObject& object = *found.value();
  if (object.modified == 0 || object.etag.find('-') != object.etag.npos) return {};
  return object.modified * 1'000'000'000;
}

std::string S3Store::why_not_attachable(const StoredFile& file, const std::string& identity) const {
  if (is_one_request(file)) return {};
  const auto bucket = Bucket::open(file.path);
  if (!bucket) return bucket.error().what;
  const auto record = load_record(record_path(bucket.value(), identity));
  const auto because = [&](std::string_view why) {
    return fmt::format("its upload to {} {}", quoted_name(file.path), why);
  };
  if (!record || record->upload.empty()) return because("was not started");
  if (record->bytes != file.bytes) return because("has a different size");
  const auto parts = bucket.value().list_parts(record->upload, {});
  // attach() reports these
  if (!parts && (parts.error().code == ExitCode::kTransient || Bucket::is_malformed(parts.error()))) return {};
  if (!parts) return because("cannot be examined: " + parts.error().what);
  if (!parts.value()) return because("has expired, or another program has aborted it");
  return {};
}

SealedFile S3Store::find_sealed(const StoredFile& file, const std::string& identity, const FileId& id) const {
  const auto bucket = Bucket::open(file.path);
  if (!bucket) return SealedFile::kMissing;
  const auto found = bucket.value().find({});
  if (found && found.value() && found.value()->is({id.device, id.inode}, file.bytes)) return SealedFile::kPublished;
  if (is_one_request(file)) return SealedFile::kUnfinished;
  const auto record = load_record(record_path(bucket.value(), identity));
  return record && record->token.id() == id ? SealedFile::kUnfinished : SealedFile::kMissing;
}

Status S3Store::finish_publishing(std::span<const StoredFile> files, std::span<const FileId> ids,
                                  const StoreOptions& options) const {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool is_visible = find_sealed(files[i], options.identity, ids[i]) == SealedFile::kPublished;
    if (is_visible && is_one_request(files[i])) continue;
    BOOST_OUTCOME_TRY(Bucket bucket, Bucket::open(files[i].path));
    const ObjectToken token{ids[i].device, ids[i].inode};
    if (is_one_request(files[i])) {
      BOOST_OUTCOME_TRY(bucket.put(files[i].header, token, options.overwrite, settings_of(options)));
      continue;
    }
    const std::string path = record_path(bucket, options.identity, options.records);
    if (is_visible && !load_record(path)) continue;
    BOOST_OUTCOME_TRY(const auto record, UploadRecord::open(path));
    if (!is_visible) {
      BOOST_OUTCOME_TRY(const auto parts, held_parts(bucket, record->text(), settings_of(options)));
      std::vector<std::string> etags;
      for (const StoredPart& part : parts.value_or(std::vector<StoredPart>())) etags.push_back(part.etag);
      BOOST_OUTCOME_TRY(bucket.complete(record->text().upload, etags, token, files[i].bytes, options.overwrite,
                                        settings_of(options)));
    }
    record->remove();
  }
  return ok();
}

// The records of the outputs, and the journal next to that of the first.
std::vector<UnfinishedFile> S3Store::find_unfinished(std::span<const std::string> outputs,
                                                     std::span<const std::string> endings) const {
  std::map<std::string, std::string> addresses;  // by the path that stands for them
  std::vector<std::string> bases;
  for (const std::string& output : outputs)
    if (const auto bucket = Bucket::open(output))
      if (std::string base = record_base(bucket.value()); !base.empty()) {
        addresses.emplace(base, output);
        bases.push_back(std::move(base));
      }
  std::vector<std::string> all_endings(endings.begin(), endings.end());
  all_endings.emplace_back(kNoPlan);
  std::vector<UnfinishedFile> found = local_store().find_unfinished(bases, all_endings);
  for (UnfinishedFile& file : found) {
    file.output = addresses[file.output];
    if (file.ending.ends_with(kJournalEnd)) continue;
    file.bytes = 0;
    if (const auto record = load_record(file.path))
      for (const auto& [number, part] : record->parts) file.bytes += part.bytes;
  }
  return found;
}

Status S3Store::remove_unfinished(const std::string& path) const {
  if (const auto record = path.ends_with(kJournalEnd) ? std::nullopt : load_record(path)) {
    BOOST_OUTCOME_TRY(const Bucket bucket, Bucket::open(record->object));
    BOOST_OUTCOME_TRY(abort_left(bucket, *record));
  }
  return local_store().remove_unfinished(path);
}

}  // namespace

const StoreScheme& s3_store() {
  static const S3Store scheme;
  return scheme;
}

}  // namespace ggufmill::remote
