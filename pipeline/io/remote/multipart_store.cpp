#include "pipeline/io/remote/multipart_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "pipeline/core/digest.h"
#include "pipeline/core/text.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/threads.h"

namespace ggufmill::remote {
namespace {

Error defect(std::string what) {
  return {ExitCode::kInternal, "", std::move(what), "nothing was written",
          "this is a bug in ggufmill: please report it"};
}

constexpr std::size_t kHashBytes = 1 << 20;  // read from a spooled part at a time

}  // namespace

// A write that was started and not yet completed.
struct MultipartStore::Write {
  std::size_t file = 0;
  std::uint64_t offset = 0;
  std::span<const std::byte> from;
  Completion done;
  std::mutex mutex;
  std::size_t pieces_left = 1;  // one for run() itself
  std::optional<Error> error;

  // A write whose pieces were lost to an exception is completed too.
  ~Write() {
    if (pieces_left != 0) done(Error{ExitCode::kTransient, "", "out of memory", "", ""});
  }

  void piece_done(const Status& status) {
    {
      const std::scoped_lock lock(mutex);
      if (!status && !error) error = status.error();
      if (--pieces_left != 0) return;
    }
    if (error)
      done(*error);
    else
      done(ok());
  }
};

Result<std::uint64_t> memory_for_parts(const PartMap& map, const StoreOptions& options) {
  const std::uint64_t spool = options.spool.folder.empty() ? 0 : options.spool.size;
  // Space may stay unused on both sides, because a part is on one side as a whole.
  const std::uint64_t needed = map.most_open() + (spool == 0 ? 0 : map.largest());
  const std::uint64_t useful = map.most_open() + 4 * map.largest();
  if (options.memory + spool >= needed) return std::min(options.memory, useful);
  Error error = usage_error(fmt::format(
      "the parts that are open at the same time need {}, but limits.memory leaves {} for them{}", human_bytes(needed),
      human_bytes(options.memory), spool == 0 ? "" : fmt::format(", and limits.spool has {}", human_bytes(spool))));
  error.detail =
      fmt::format("a part has up to {}; parts stay open until all of their bytes are made", human_bytes(map.largest()));
  const std::uint64_t missing = map.most_open() + map.largest() - std::min(options.memory, map.most_open());
  error.help = fmt::format(
      "add {}MiB to limits.memory, or let parts wait on disk: limits: {{spool: {{folder: FOLDER, "
      "size: {}MiB}}}}",
      (2 * missing >> 20) + 1, (missing >> 20) + 1);
  return error;
}

MultipartStore::MultipartStore(std::vector<StoredFile> files, PartMap map, std::vector<Target> targets,
                               const StoreOptions& options, const Settings& settings, std::uint64_t memory)
    : files_(std::move(files)),
      map_(std::move(map)),
      targets_(std::move(targets)),
      overwrite_(options.overwrite),
      spool_(options.spool),
      most_memory_(memory),
      settings_(settings),
      held_(map_.parts().size()),
      written_(files_.size()),
      parts_(map_.parts().size()) {
  settings_.abandoned = &abandoned_;
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].missing = map_.parts()[i].data;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    etags_.emplace_back(map_.of_file(file).size());
    for (const StoredPart& held : targets_[file].held) {
      const std::size_t part = map_.of_file(file)[held.number - 1];
      held_[part] = true;
      parts_[part].state = Part::State::kUploaded;
      etags_[file][held.number - 1] = held.etag;
    }
  }
  left_ = static_cast<std::size_t>(
      std::ranges::count_if(parts_, [](const Part& part) { return part.state != Part::State::kUploaded; }));
  if (left_ == 0) return;
  const BlockedSignals blocked;
  uploads_.emplace(kUploads);
}

MultipartStore::~MultipartStore() {
  abandoned_ = true;
  uploads_.reset();
  if (is_kept_ || is_published_) return;
  try {
    // Uploads that cannot be aborted now stay in their records, for a later run.
    if (abort_uploads()) return;
  } catch (...) {
  }
}

// For requests after `abandoned_` is set, or after the user has stopped the run: few attempts.
Settings MultipartStore::last_settings() const {
  Settings settings = settings_;
  settings.stop = settings.abandoned = nullptr;
  settings.retries.attempts = std::min(settings.retries.attempts, 4u);
  settings.retries.total = std::chrono::seconds(30);
  return settings;
}

Status MultipartStore::abort_uploads() {
  std::vector<Target*> started;
  for (Target& target : targets_)
    if (!target.upload.empty()) started.push_back(&target);
  const Settings settings = last_settings();
  return for_each_on_threads(8, started.size(), [&](std::size_t i, auto&) -> Status {
    Target& target = *started[i];
    BOOST_OUTCOME_TRY(target.bucket.abort(target.upload, settings));
    if (target.record) target.record->remove();
    return ok();
  });
}

bool MultipartStore::holds(std::size_t file, std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes == 0) return true;
  const auto number = [&](std::uint64_t at) { return map_.parts()[map_.find(file, at)].number; };
  const auto parts = map_.of_file(file);
  const std::size_t first = number(offset) - 1, last = number(offset + bytes - 1) - 1;
  return std::ranges::all_of(parts.subspan(first, last - first + 1), [&](std::size_t part) { return held_[part]; });
}

Status MultipartStore::read(std::size_t, std::uint64_t, std::span<std::byte>) const {
  return defect("an object is read before its upload is complete");
}

// ---- writing ----

std::shared_ptr<MultipartStore::Write> MultipartStore::begin(std::size_t file, std::uint64_t offset,
                                                             std::span<const std::byte> from, Completion done) {
  auto write = std::make_shared<Write>();
  write->file = file;
  write->offset = offset;
  write->from = from;
  write->done = std::move(done);
  return write;
}

void MultipartStore::start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                                 Completion done) {
  io.wait_for(
      [this, write = begin(file, offset, from, std::move(done))] {
        run(write);
        return ok();
      },
      [](const Status&) {});
}

Status MultipartStore::write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) {
  std::mutex mutex;
  std::condition_variable is_done;
  std::optional<Status> result;
  run(begin(file, offset, from, [&](Status status) {
    const std::scoped_lock lock(mutex);
    result = std::move(status);
    is_done.notify_one();
  }));
  std::unique_lock lock(mutex);
  is_done.wait(lock, [&] { return result.has_value(); });
  return *result;
}

void MultipartStore::run(const std::shared_ptr<Write>& write) noexcept {
  Status status = ok();
  try {
    std::vector<Piece> pieces;
    for (std::uint64_t done = 0; done < write->from.size();) {
      const std::size_t part = map_.find(write->file, write->offset + done);
      const PartSpan& span = map_.parts()[part];
      const std::uint64_t at = write->offset + done - span.offset;
      const std::uint64_t bytes = std::min(span.bytes - at, write->from.size() - done);
      pieces.push_back({write, part, at, write->from.subspan(done, bytes)});
      done += bytes;
    }
    write->pieces_left += pieces.size();
    written_[write->file] += write->from.size();
    place(std::move(pieces));
  } catch (...) {
    fail(error_of_exception());
    status = error_of_exception();
  }
  write->piece_done(status);
}

void MultipartStore::finish(const Piece& piece, const Status& status) { piece.write->piece_done(status); }

// Copies pieces to their parts, or lets them wait there.
void MultipartStore::place(std::vector<Piece> pieces) {
  while (!pieces.empty()) {
    std::vector<Piece> next;  // pieces that no longer wait
    for (Piece& piece : pieces) {
      Part& part = parts_[piece.part];
      {
        std::unique_lock lock(mutex_);
        if (has_failed_) {
          const Error error = failure();
          lock.unlock();
          finish(piece, error);
          continue;
        }
        if (part.state == Part::State::kUploaded) {  // by an earlier run
          lock.unlock();
          finish(piece, ok());
          continue;
        }
        if (part.state == Part::State::kNoSpace) {
          part.waiting.push_back(piece);
          for (Piece& granted : grant(piece.part + 1)) next.push_back(std::move(granted));
          continue;
        }
      }
      const Status copied = copy(piece);
      if (!copied) fail(copied.error());
      finish(piece, copied);
    }
    pieces = std::move(next);
  }
}

// Gives space to parts in order, up to `wanted`, as far as there is some. Returns the pieces that waited for it. The
// mutex is locked.
std::vector<MultipartStore::Piece> MultipartStore::grant(std::size_t wanted) {
  std::vector<Piece> ready;
  wanted_ = std::max(wanted_, wanted);
  for (; next_ < wanted_; ++next_) {
    Part& part = parts_[next_];
    if (part.state == Part::State::kUploaded) continue;
    const std::uint64_t bytes = map_.parts()[next_].bytes;
    if (memory_used_ + bytes <= most_memory_) {
      memory_used_ += bytes;
    } else {
      // A disk is not used where waiting for the network suffices.
      if (in_memory_uploads_ != 0 || spool_.folder.empty() || spool_used_ + bytes > spool_.size) break;
      spool_used_ += bytes;
      part.is_spooled = true;
    }
    part.state = Part::State::kOpen;
    std::ranges::move(part.waiting, std::back_inserter(ready));
    part.waiting.clear();
    if (part.missing == 0) start_upload(next_);
  }
  return ready;
}

Status MultipartStore::open(std::size_t index) {
  Part& part = parts_[index];
  const std::scoped_lock lock(part.opening);
  if (part.space) return ok();
  const PartSpan& span = map_.parts()[index];
  std::unique_ptr<PartSpace> space;
  if (part.is_spooled) {
    BOOST_OUTCOME_TRY(space, PartSpace::in_folder(spool_.folder, span.bytes));
  } else {
    BOOST_OUTCOME_TRY(space, PartSpace::in_memory(span.bytes));
  }
  const auto header = std::as_bytes(std::span(files_[span.file].header));
  if (span.offset < header.size()) {
    BOOST_OUTCOME_TRY(
        space->write(0, header.subspan(span.offset, std::min<std::uint64_t>(header.size() - span.offset, span.bytes))));
  }
  part.space = std::move(space);
  return ok();
}

Status MultipartStore::copy(const Piece& piece) {
  BOOST_OUTCOME_TRY(open(piece.part));
  BOOST_OUTCOME_TRY(parts_[piece.part].space->write(piece.offset, piece.from));
  const std::scoped_lock lock(mutex_);
  Part& part = parts_[piece.part];
  if (piece.from.size() > part.missing) return defect("bytes of an output are written twice");
  part.missing -= piece.from.size();
  if (part.missing == 0) start_upload(piece.part);
  return ok();
}

// ---- uploading ----

// The part is complete. The mutex is locked.
void MultipartStore::start_upload(std::size_t index) {
  if (!parts_[index].is_spooled) ++in_memory_uploads_;
  boost::asio::post(uploads_->context(), [this, index] { upload(index); });
}

void MultipartStore::upload(std::size_t index) noexcept {
  try {
    {
      const std::scoped_lock lock(mutex_);
      if (has_failed_) return;
    }
    if (const Status sent = send_part(index); !sent) return fail(sent.error());
    place(uploaded(index));
  } catch (...) {
    fail(error_of_exception());
  }
}

Status MultipartStore::send_part(std::size_t index) {
  BOOST_OUTCOME_TRY(open(index));  // unless it has been: a part without data
  const PartSpan& span = map_.parts()[index];
  PartSpace& space = *parts_[index].space;
  Target& target = targets_[span.file];
  Digest md5(DigestKind::kMd5);
  if (!space.bytes().empty()) {
    md5.add(space.bytes());
  } else {
    std::vector<std::byte> buffer(kHashBytes);
    for (std::uint64_t at = 0; at < span.bytes; at += buffer.size()) {
      buffer.resize(std::min<std::uint64_t>(buffer.size(), span.bytes - at));
      BOOST_OUTCOME_TRY(space.read(at, buffer));
      md5.add(buffer);
    }
  }
  Status spool_read = ok();
  RequestBody body;
  body.bytes = span.bytes;
  body.read = [&](std::uint64_t offset, std::span<std::byte> into) {
    spool_read = space.read(offset, into);
    return spool_read.has_value();
  };
  auto etag = target.bucket.put_part(target.upload, span.number, body, md5.base64(), settings_);
  BOOST_OUTCOME_TRY(spool_read);
  if (!etag) return etag.error();
  const std::scoped_lock lock(mutex_);
  etags_[span.file][span.number - 1] = etag.value();
  if (uploaded_part_) uploaded_part_({span.file, span.number - 1, etag.value()});
  if (!target.record) return ok();
  // Without its line in the record, a later run uploads the part again.
  if (const Status noted = target.record->add_part({span.number, etag.value(), span.bytes});
      !noted && warnings_.empty())
    warnings_.push_back(render(noted.error()));
  return ok();
}

// Frees the space of the part. Returns the pieces that waited for it.
std::vector<MultipartStore::Piece> MultipartStore::uploaded(std::size_t index) {
  Part& part = parts_[index];
  const std::unique_ptr<PartSpace> freed = std::move(part.space);
  const std::uint64_t bytes = map_.parts()[index].bytes;
  std::vector<Piece> ready;
  {
    const std::scoped_lock lock(mutex_);
    part.state = Part::State::kUploaded;
    (part.is_spooled ? spool_used_ : memory_used_) -= bytes;
    if (!part.is_spooled) --in_memory_uploads_;
    --left_;
    ready = grant(0);
  }
  changed_.notify_all();
  return ready;
}

// The mutex is locked.
Error MultipartStore::failure() const {
  return failure_.value_or(Error{ExitCode::kTransient, "", "out of memory", "", ""});
}

void MultipartStore::fail(const Error& error) noexcept {
  std::vector<Piece> waiting;
  try {
    const std::scoped_lock lock(mutex_);
    const bool is_first = !std::exchange(has_failed_, true);
    if (is_first) failure_ = error;
    for (Part& part : parts_) {
      std::ranges::move(part.waiting, std::back_inserter(waiting));
      part.waiting.clear();
    }
  } catch (...) {
  }
  changed_.notify_all();
  for (const Piece& piece : waiting) finish(piece, error);
}

Status MultipartStore::wait_for_uploads() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return has_failed_ || left_ == 0; });
  if (has_failed_) return failure();
  return ok();
}

Result<std::vector<FileId>> MultipartStore::seal(std::span<const std::uint64_t> written) {
  for (std::size_t file = 0; file < files_.size(); ++file)
    if (written_[file] != written[file])
      return defect(fmt::format("{} bytes of {} were written instead of {}", written_[file].load(),
                                quoted_name(files_[file].path), written[file]));
  BOOST_OUTCOME_TRY(upload_rest());
  std::vector<FileId> ids;
  for (const Target& target : targets_) ids.push_back(target.token.id());
  return ids;
}

// Uploads the parts without data, and waits for all others.
Status MultipartStore::upload_rest() {
  std::vector<Piece> ready;
  {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (!has_failed_ && parts_[i].state != Part::State::kUploaded && parts_[i].missing != 0)
        return defect(fmt::format("{} bytes of part {} of {} are missing", parts_[i].missing, map_.parts()[i].number,
                                  quoted_name(files_[map_.parts()[i].file].path)));
    ready = grant(parts_.size());  // parts without data
  }
  place(std::move(ready));
  return wait_for_uploads();
}

Result<std::vector<UploadedChunk>> MultipartStore::finish() {
  BOOST_OUTCOME_TRY(upload_rest());
  std::vector<UploadedChunk> chunks;
  for (std::size_t file = 0; file < files_.size(); ++file)
    for (const std::size_t part : map_.of_file(file)) {
      const PartSpan& span = map_.parts()[part];
      if (span.data != 0) chunks.push_back({file, span.number - 1, etags_[file][span.number - 1]});
    }
  return chunks;
}

Status MultipartStore::leave() {
  {
    // Complete parts are still uploaded; open parts are lost.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has_failed_ || in_memory_uploads_ == 0; });
  }
  is_kept_ = true;
  return ok();
}

// All objects are looked for first, so that usually none becomes visible if one is in the way.
Status MultipartStore::publish() {
  Settings settings = settings_;
  if (!overwrite_)
    for (std::size_t file = 0; file < files_.size(); ++file) {
      const Target& target = targets_[file];
      const auto there = target.bucket.find(settings);
      if (!there && !Bucket::is_unreadable(there.error())) return there.error();
      if (there && there.value() && !there.value()->is(target.token, files_[file].bytes)) {
        Error error = target_exists(target.bucket.path());
        error.detail = "another program wrote it during the run";
        return error;
      }
    }
  std::vector<std::string> visible;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    Target& target = targets_[file];
    const Status status = target.upload.empty()
                              ? target.bucket.put(files_[file].header, target.token, overwrite_, settings)
                              : target.bucket.complete(target.upload, etags_[file], target.token, files_[file].bytes,
                                                       overwrite_, settings);
    if (status) {
      visible.push_back(quoted_name(target.bucket.path()));
      is_published_ = true;  // from here on, a failed run is completed by the next
      continue;
    }
    Error error = status.error();
    if (!visible.empty()) {
      if (!error.detail.empty()) error.detail += "\n";
      error.detail += fmt::format("{} of {} outputs are already in place and are kept: {}", visible.size(),
                                  files_.size(), fmt::join(visible, ", "));
    }
    return error;
  }
  for (Target& target : targets_)
    if (target.record) target.record->remove();
  return ok();
}

}  // namespace ggufmill::remote
