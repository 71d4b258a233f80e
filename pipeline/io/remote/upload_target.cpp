#include "pipeline/io/remote/upload_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/remote/part_map.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/threads.h"

namespace ggufmill::remote {
namespace {

constexpr unsigned kRequests = 8;  // at a time, when many files are opened
// An upload whose identifier was lost is recognized by its time: no attempt to start it is later than this, in seconds.
constexpr std::int64_t kLongestStart = 15 * 60;

}  // namespace

bool is_one_request(const StoredFile& file) { return file.bytes == file.header.size(); }

std::string record_path(const Bucket& bucket, const std::string& identity, const std::string& folder) {
  const std::string base = record_base(bucket, folder);
  return base.empty() ? "" : temporary_path(base, identity.empty() ? kNoPlan : identity);
}

Settings settings_of(const StoreOptions& options) { return {.stop = options.stop}; }

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

Result<Target> start_target(const StoredFile& file, const StoreOptions& options,
                            const std::function<void(std::string)>& warn) {
  const Settings settings = settings_of(options);
  BOOST_OUTCOME_TRY(Bucket bucket, Bucket::open(file.path));
  Target target{std::move(bucket), ObjectToken::random()};
  BOOST_OUTCOME_TRY(check_object(target.bucket, options.overwrite, settings));
  if (is_one_request(file)) return target;
  const std::string path = record_path(target.bucket, options.identity, options.records);
  if (path.empty()) return usage_error("there is no folder for the records of uploads", "set HOME or XDG_STATE_HOME");
  const auto abort = [&](const RecordText& left) -> Status {
    Status aborted = abort_left(target.bucket, left);
    if (aborted || aborted.error().code != ExitCode::kIo) return aborted;
    warn(fmt::format("{}: the upload {} of an earlier run stays: {}", target.bucket.path(), quoted_answer(left.upload),
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
  target.upload = started.value().upload;
  BOOST_OUTCOME_TRY(target.record->set_upload(target.upload));
  if (started.value().is_alone || since == 0) return target;
  const Status alone = target.bucket.abort_others(target.upload, since, target.bucket.server_time(), settings);
  if (!alone)
    warn(fmt::format("{}: a second upload may have been started, and stays: {}", target.bucket.path(),
                     alone.error().what));
  return target;
}

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

Result<Target> resume_target(const StoredFile& file, const StoreOptions& options) {
  BOOST_OUTCOME_TRY(Bucket bucket, Bucket::open(file.path));
  Target target{std::move(bucket), ObjectToken::random()};
  if (is_one_request(file)) return target;
  BOOST_OUTCOME_TRY(target.record, UploadRecord::open(record_path(target.bucket, options.identity, options.records)));
  const RecordText& record = target.record->text();
  target.token = record.token;
  target.upload = record.upload;
  BOOST_OUTCOME_TRY(auto held, held_parts(target.bucket, record, settings_of(options)));
  if (!held) return upload_is_gone(file.path);
  erase_foreign(*held, file.bytes);
  target.held = std::move(*held);
  return target;
}

void erase_foreign(std::vector<StoredPart>& parts, std::uint64_t file_bytes) {
  const std::uint64_t size = part_bytes(file_bytes), count = (file_bytes + size - 1) / size;
  std::erase_if(parts, [&](const StoredPart& part) {
    return part.number < 1 || part.number > count ||
           part.bytes != std::min(size, file_bytes - (part.number - 1) * size);
  });
}

Error upload_is_gone(const std::string& path) {
  return {ExitCode::kIo, path, "the upload of an earlier run no longer exists", "",
          "run the same command again: it starts over"};
}

Result<std::vector<Target>> for_all_targets(std::span<const StoredFile> files,
                                            const std::function<Result<Target>(const StoredFile&)>& open,
                                            std::vector<std::optional<Target>>& opened) {
  opened.resize(files.size());
  std::vector<std::optional<Error>> errors(files.size());
  std::atomic<bool> has_failed{false};
  const auto open_one = [&](std::size_t i) {
    if (has_failed) return;
    auto one = open(files[i]);
    if (one) {
      opened[i] = std::move(one).value();
    } else {
      errors[i] = one.error();
      has_failed = true;
    }
  };
  if (!files.empty()) open_one(0);
  BOOST_OUTCOME_TRY(for_each_on_threads(kRequests, files.size() - std::min<std::size_t>(files.size(), 1),
                                        [&](std::size_t i, auto&) -> Status {
                                          open_one(i + 1);
                                          return ok();
                                        }));
  for (const auto& error : errors)
    if (error) return *error;
  std::vector<Target> targets;
  targets.reserve(opened.size());
  for (auto& one : opened) targets.push_back(std::move(*one));
  return targets;
}

}  // namespace ggufmill::remote
