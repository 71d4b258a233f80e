#include "pipeline/io/atomic_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "pipeline/io/io_service.h"
#include "pipeline/io/output_folder.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/write_behind.h"

namespace ggufmill {
namespace {

class NewFile final : public AtomicFile {
 public:
  NewFile(std::string path, std::uint64_t bytes, const Options& options, OutputFolder&& folder,
          TemporaryFile&& temporary)
      : path_(std::move(path)),
        bytes_(bytes),
        overwrite_(options.overwrite),
        behind_(options.mode),
        folder_(std::move(folder)),
        temporary_(std::move(temporary)) {}

  const std::string& path() const override { return path_; }
  Result<bool> reserve_more() override;
  Status read(std::uint64_t offset, std::span<std::byte> into) const override;
  Status finish(std::span<const std::byte> header, std::uint64_t data_bytes) override;
  Status publish(bool revocable) override { return temporary_.publish(overwrite_, revocable); }
  Status settle() override;
  Status take_back() override { return temporary_.take_back(); }
  void keep() override;
  Status leave() override;
  Result<FileId> id() const override { return temporary_.id(); }
  Result<bool> is_as_left() override;
  const std::string& warning() const override { return temporary_.warning(); }
  Result<Transfer> begin_write(std::uint64_t offset, std::span<const std::byte> from) override;
  void end_write(std::uint64_t offset, std::size_t bytes) override;
  std::uint64_t written() const override { return written_; }

 private:
  int descriptor() const { return temporary_.descriptor(); }
  Status check(std::uint64_t offset, std::uint64_t bytes) const;
  Status sync() const;
  Error defect(std::string what) const;

  const std::string path_;
  const std::uint64_t bytes_;
  const bool overwrite_;
  std::atomic<std::uint64_t> written_{0};
  WriteBehind behind_;
  OutputFolder folder_;  // outlives the temporary file in it
  TemporaryFile temporary_;
  std::optional<Error> not_reserved_;  // read by others once `is_not_reserved_` is set
  std::atomic<bool> is_not_reserved_{false};
};

bool lies_like_the_file(std::uint64_t offset, std::span<const std::byte> memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data()) % kDirectAlignment == offset % kDirectAlignment;
}

Error NewFile::defect(std::string what) const {
  return {ExitCode::kInternal, path_, std::move(what), "", "this is a bug in ggufmill: please report it"};
}

Status NewFile::check(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return ok();
  return defect(fmt::format("{} bytes at byte {:#x} are outside the {} planned bytes", bytes, offset, bytes_));
}

Result<bool> NewFile::reserve_more() {
  if (is_not_reserved_) return *not_reserved_;
  const auto attempt = [&]() noexcept -> Result<bool> {
    try {
      return temporary_.reserve_more();
    } catch (...) {
      return error_of_exception();
    }
  };
  const Result<bool> all = attempt();
  if (!all) {
    not_reserved_ = all.error();
    is_not_reserved_ = true;
  }
  return all;
}

Result<Transfer> NewFile::begin_write(std::uint64_t offset, std::span<const std::byte> from) {
  if (is_not_reserved_) return *not_reserved_;
  BOOST_OUTCOME_TRY(check(offset, from.size()));
  const Transfer whole{descriptor(), offset, const_cast<std::byte*>(from.data()), from.size(), from.size()};
  const int direct = temporary_.direct_descriptor();
  if (direct < 0 || !lies_like_the_file(offset, from)) return whole;
  const std::size_t head = std::min((kDirectAlignment - offset % kDirectAlignment) % kDirectAlignment, from.size());
  const std::size_t body = (from.size() - head) / kDirectAlignment * kDirectAlignment;
  BOOST_OUTCOME_TRY(write_all(descriptor(), path_, offset, from.first(head)));
  BOOST_OUTCOME_TRY(write_all(descriptor(), path_, offset + head + body, from.subspan(head + body)));
  return Transfer{direct, offset + head, whole.data + head, body, body};
}

void NewFile::end_write(std::uint64_t offset, std::size_t bytes) {
  written_ += bytes;
  behind_.wrote(descriptor(), offset, bytes);
}

Status NewFile::sync() const {
  if (sync_to_disk(descriptor()) < 0) return io_error(path_, "flush the file to the disk (fsync)", errno);
  return ok();
}

Status NewFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  BOOST_OUTCOME_TRY(check(offset, into.size()));
  Status read = read_all({descriptor(), offset, into.data(), into.size(), into.size()}, path_);
  if (read || read.error().code != ExitCode::kBadInput) return read;
  return Error{ExitCode::kIo, path_, "another program truncated the file while it was being written",
               "nothing was written", "find out what else writes to this folder, then run the job again"};
}

Status NewFile::finish(std::span<const std::byte> header, std::uint64_t data_bytes) {
  if (is_not_reserved_) return *not_reserved_;
  BOOST_OUTCOME_TRY(temporary_.end_reserving());
  if (written_ != data_bytes || data_bytes > bytes_ || header.size() > bytes_ - data_bytes)
    return defect(
        fmt::format("{} bytes of data were written but {} were planned, with a header of {} bytes in a file of {}",
                    written(), data_bytes, header.size(), bytes_));
  BOOST_OUTCOME_TRY(sync());
  behind_.drop_all(descriptor());
  BOOST_OUTCOME_TRY(const std::uint64_t bytes, temporary_.bytes());
  if (bytes != bytes_)
    return Error{ExitCode::kIo, path_,
                 fmt::format("another program changed the file while it was being written: it has {} bytes, not {}",
                             bytes, bytes_),
                 "nothing was written", "find out what else writes to this folder, then run the job again"};
  BOOST_OUTCOME_TRY(write_all(descriptor(), path_, 0, header));
  BOOST_OUTCOME_TRY(sync());
  BOOST_OUTCOME_TRY(temporary_.is_as_left());
  return ok();
}

Result<bool> NewFile::is_as_left() {
  BOOST_OUTCOME_TRY(const bool same, temporary_.is_as_left());
  BOOST_OUTCOME_TRY(const bool whole, temporary_.has_its_blocks());
  return same && whole;
}

Status NewFile::settle() {
  folder_.keep();
  BOOST_OUTCOME_TRY(temporary_.settle());
  return folder_.sync();
}

void NewFile::keep() {
  temporary_.keep();
  folder_.keep();
}

Status NewFile::leave() {
  if (is_not_reserved_) return *not_reserved_;
  BOOST_OUTCOME_TRY(sync());
  keep();
  return folder_.sync();
}

}  // namespace

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path, std::uint64_t bytes,
                                                       const Options& options) {
  BOOST_OUTCOME_TRY(const TargetPath target, split_target(path));
  BOOST_OUTCOME_TRY(check_target(path, options.overwrite));
  BOOST_OUTCOME_TRY(OutputFolder folder, OutputFolder::open(target.folder));
  // Check again now that all folders of the path exist: before, "new/../model.gguf" did not resolve.
  BOOST_OUTCOME_TRY(const std::optional<FileStatus> old, check_target(path, options.overwrite));
  BOOST_OUTCOME_TRY(TemporaryFile temporary,
                    TemporaryFile::open(folder.descriptor(), target.name, path, options.identity, options.attach));
  if (options.mode == IoMode::kDirect) {
    BOOST_OUTCOME_TRY(temporary.open_direct());
  }
  if (options.attach) {
    const auto there = temporary.bytes();
    if (!there || there.value() != bytes) {
      temporary.keep();
      BOOST_OUTCOME_TRY(there);
      return Error{ExitCode::kIo, path,
                   fmt::format("the file left by an earlier run has {} bytes, not {}", there.value(), bytes), "",
                   "start over"};
    }
  } else {
    BOOST_OUTCOME_TRY(options.reserve_later ? temporary.begin_reserving(bytes) : temporary.reserve(bytes));
  }
  if (old || options.only_owner_writes) {
    unsigned mode = old ? old->mode & kPermissions : new_file_mode(folder.descriptor());
    if (options.only_owner_writes) mode &= ~(kGroupMayWrite | kOthersMayWrite);
    BOOST_OUTCOME_TRY(temporary.set_mode(mode));
  }
  return std::unique_ptr<AtomicFile>(new NewFile(path, bytes, options, std::move(folder), std::move(temporary)));
}

}  // namespace ggufmill
