#include "pipeline/io/remote/s3_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>

#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/remote/multipart_store.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/threads.h"

namespace ggufmill::remote {
namespace {

// Identity of files that belong to no plan, such as reports.
constexpr const char* kNoPlan = "file";
constexpr unsigned kRequests = 8;  // at a time, when many files are opened
// An upload whose identifier was lost is recognized by its time: no attempt to start it is later than this, in seconds.
constexpr std::int64_t kLongestStart = 15 * 60;

bool is_one_request(const StoredFile& file) { return file.bytes == file.header.size(); }

std::string record_path(const Bucket& bucket, const std::string& identity) {
  const std::string base = record_base(bucket);
  return base.empty() ? "" : temporary_path(base, identity.empty() ? kNoPlan : identity);
}

Settings settings_of(const StoreOptions& options) { return {.stop = options.stop}; }

// Aborts an upload that an earlier process has left.
Status abort_left(const Bucket& bucket, const RecordText& record) {
  if (!record.upload.empty()) return bucket.abort(record.upload, {});
  if (record.since == 0) return ok();
  return bucket.abort_others("", record.since, record.since + kLongestStart, {});
}

Status check_object(const Bucket& bucket, bool overwrite, const Settings& settings) {
  const auto found = bucket.find(settings);
  // A user who may only write learns at the end whether the object exists.
  if (!found && Bucket::is_unreadable(found.error())) return ok();
  if (!found) return found.error();
  if (found.value() && !overwrite) return target_exists(bucket.path());
  return ok();
}

// Starts the upload of a file, in place of one that an earlier run has left. An old upload that the server refuses to
// abort is no reason not to start a new one; `warn` reports it.
Result<Target> start(const StoredFile& file, const StoreOptions& options,
                     const std::function<void(std::string)>& warn) {
  const Settings settings = settings_of(options);
  BOOST_OUTCOME_TRY(Bucket bucket, Bucket::open(file.path));
  Target target{std::move(bucket), ObjectToken::random()};
  BOOST_OUTCOME_TRY(check_object(target.bucket, options.overwrite, settings));
  if (is_one_request(file)) return target;
  const std::string path = record_path(target.bucket, options.identity);
  if (path.empty()) return usage_error("there is no folder for the records of uploads", "set HOME or XDG_STATE_HOME");
  const auto abort = [&](const RecordText& left) -> Status {
    const Status aborted = abort_left(target.bucket, left);
    if (aborted || aborted.error().code != ExitCode::kIo) return aborted;
    warn(fmt::format("{}: the upload {} of an earlier run stays: {}", target.bucket.path(), quoted_name(left.upload),
                     aborted.error().what));
    return ok();
  };
  const std::int64_t since = target.bucket.server_time();
  BOOST_OUTCOME_TRY(
      target.record,
      UploadRecord::create(
          path, {.object = target.bucket.path(), .bytes = file.bytes, .token = target.token, .since = since}, abort));
  auto started = target.bucket.start_upload(target.token, settings);
  if (!started) {
    if (started.error().code != ExitCode::kTransient && started.error().code != ExitCode::kInterrupted)
      target.record->remove();
    return started.error();
  }
  BOOST_OUTCOME_TRY(target.record->set_upload(started.value().upload));
  if (started.value().is_alone || since == 0) return target;
  const Status alone = target.bucket.abort_others(started.value().upload, since, target.bucket.server_time(), settings);
  if (!alone)
    warn(fmt::format("{}: a second upload may have been started, and stays: {}", target.bucket.path(),
                     alone.error().what));
  return target;
}

// Returns the parts that both the record and the bucket have.
Result<std::optional<std::vector<StoredPart>>> held_parts(const Bucket& bucket, const RecordText& record,
                                                          const Settings& settings) {
  BOOST_OUTCOME_TRY(auto listed, bucket.list_parts(record.upload, settings));
  if (!listed) return std::nullopt;
  std::erase_if(*listed, [&](const StoredPart& part) {
    const auto noted = record.parts.find(part.number);
    return noted == record.parts.end() || noted->second.etag != part.etag || noted->second.bytes != part.bytes;
  });
  return std::optional(std::move(*listed));
}

Result<Target> resume(const StoredFile& file, const StoreOptions& options) {
  BOOST_OUTCOME_TRY(Bucket bucket, Bucket::open(file.path));
  Target target{std::move(bucket), ObjectToken::random()};
  if (is_one_request(file)) return target;
  BOOST_OUTCOME_TRY(target.record, UploadRecord::open(record_path(target.bucket, options.identity)));
  const RecordText& record = target.record->text();
  target.token = record.token;
  BOOST_OUTCOME_TRY(auto held, held_parts(target.bucket, record, settings_of(options)));
  if (!held)
    return Error{ExitCode::kIo, file.path, "the upload of an earlier run no longer exists", "",
                 "run the same command again: it starts over"};
  const std::uint64_t size = part_bytes(file.bytes), count = (file.bytes + size - 1) / size;
  for (const StoredPart& part : *held)
    if (part.number >= 1 && part.number <= count && part.bytes == std::min(size, file.bytes - (part.number - 1) * size))
      target.held.push_back(part);
  return target;
}

Result<std::vector<Target>> for_all(std::span<const StoredFile> files,
                                    const std::function<Result<Target>(const StoredFile&)>& open,
                                    std::vector<std::optional<Target>>& opened) {
  opened.resize(files.size());
  std::vector<std::optional<Error>> errors(files.size());
  std::atomic<bool> has_failed{false};
  BOOST_OUTCOME_TRY(for_each_on_threads(kRequests, files.size(), [&](std::size_t i, auto&) -> Status {
    if (has_failed) return ok();
    auto one = open(files[i]);
    if (one) {
      opened[i] = std::move(one).value();
    } else {
      errors[i] = one.error();
      has_failed = true;
    }
    return ok();
  }));
  for (const auto& error : errors)
    if (error) return *error;
  std::vector<Target> targets;
  for (auto& one : opened) targets.push_back(std::move(*one));
  return targets;
}

class S3Store final : public StoreScheme {
 public:
  std::string_view name() const override { return "s3"; }
  Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override;
  Status check_target(const std::string& path, bool overwrite) const override;
  void check_space(std::span<const StoredFile> files, const StoreOptions& options, Diagnostics& errors) const override;
  // Objects that were uploaded in parts have the time at which the upload was started, so nothing is known about them.
  std::optional<std::int64_t> touched_at(const std::string& path) const override;

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
  const auto start_one = [&](const StoredFile& file) { return start(file, options, warn); };
  auto targets = for_all(files, start_one, opened);
  if (!targets) {
    for (auto& one : opened)
      if (one && one->record && one->bucket.abort(one->record->text().upload, {})) one->record->remove();
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
  BOOST_OUTCOME_TRY(auto targets, for_all(
                                      files, [&](const StoredFile& file) { return resume(file, options); }, opened));
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
  if (const std::string& folder = options.spool.folder;
      !folder.empty() && !std::filesystem::is_directory(folder, ignored))
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
  if (!parts && parts.error().code == ExitCode::kTransient) return {};  // attach() reports it
  if (!parts) return because("cannot be examined: " + parts.error().what);
  if (!parts.value()) return because("has expired, or another program has aborted it");
  return {};
}

SealedFile S3Store::find_sealed(const StoredFile& file, const std::string& identity, const FileId& id) const {
  const auto bucket = Bucket::open(file.path);
  if (!bucket) return SealedFile::kMissing;
  const auto found = bucket.value().find({});
  if (found && found.value() && found.value()->token && found.value()->token->id() == id) return SealedFile::kPublished;
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
    const std::string path = record_path(bucket, options.identity);
    if (is_visible && !load_record(path)) continue;
    BOOST_OUTCOME_TRY(const auto record, UploadRecord::open(path));
    if (!is_visible) {
      BOOST_OUTCOME_TRY(const auto parts, held_parts(bucket, record->text(), settings_of(options)));
      std::vector<std::string> etags;
      for (const StoredPart& part : parts.value_or(std::vector<StoredPart>())) etags.push_back(part.etag);
      BOOST_OUTCOME_TRY(bucket.complete(record->text().upload, etags, token, options.overwrite, settings_of(options)));
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
