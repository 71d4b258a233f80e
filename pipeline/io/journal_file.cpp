#include "pipeline/io/journal_file.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "pipeline/io/output_folder.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {

Result<JournalFile::Found> JournalFile::open_existing() {
  BOOST_OUTCOME_TRY(FoundFile there, open_own(AT_FDCWD, path_, O_RDWR, path_));
  if (!there.file) return Found{std::move(there.strange), false};
  if (::flock(there.file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return Found{{}, true};
  file_ = std::move(there.file);
  if (!is_there()) file_ = Descriptor();  // its owner has removed it before the lock
  return Found{};
}

Result<bool> JournalFile::create() {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  if (!file_) {
    file_ = Descriptor(retry([&] { return system_calls().openat(AT_FDCWD, path_.c_str(), flags, kOwnMode); }));
    if (!file_ && errno == EEXIST) return false;
    if (!file_) return io_error(path_, "create the journal", errno);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      file_ = Descriptor();  // another process has found and locked it already
      return false;
    }
  }
  if (retry([&] { return system_calls().ftruncate(file_.get(), 0); }) < 0)
    return io_error(path_, "empty the journal", errno);
  return true;
}

Result<std::string> JournalFile::read(std::uint64_t most) const {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(file_.get(), &info); }) < 0)
    return io_error(path_, "stat the journal", errno);
  std::string text(std::min<std::uint64_t>(static_cast<std::uint64_t>(info.st_size), most), '\0');
  const auto into = std::as_writable_bytes(std::span(text));
  BOOST_OUTCOME_TRY(read_all({file_.get(), 0, into.data(), into.size(), into.size()}, path_));
  return text;
}

Status JournalFile::write(std::uint64_t offset, std::string_view bytes) const {
  return write_all(file_.get(), path_, offset, std::as_bytes(std::span(bytes)));
}

Status JournalFile::truncate(std::uint64_t bytes) const {
  if (retry([&] { return system_calls().ftruncate(file_.get(), static_cast<off_t>(bytes)); }) < 0)
    return io_error(path_, "truncate the journal", errno);
  return ok();
}

Status JournalFile::sync() const {
  if (sync_to_disk(file_.get()) < 0) return io_error(path_, "flush the journal to the disk (fsync)", errno);
  return ok();
}

Status JournalFile::sync_folder() const {
  BOOST_OUTCOME_TRY(const TargetPath target, split_target(path_));
  BOOST_OUTCOME_TRY(const OutputFolder folder, OutputFolder::open(target.folder));
  return folder.sync();
}

bool JournalFile::is_there() const {
  struct stat opened {
  }, named{};
  if (!file_ || retry([&] { return system_calls().fstat(file_.get(), &opened); }) < 0) return false;
  const auto look = [&] { return system_calls().fstatat(AT_FDCWD, path_.c_str(), &named, AT_SYMLINK_NOFOLLOW); };
  return retry(look) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

void JournalFile::remove() {
  if (!file_) return;
  retry([&] { return system_calls().unlinkat(AT_FDCWD, path_.c_str(), 0); });
  file_ = Descriptor();
}

}  // namespace ggufmill
