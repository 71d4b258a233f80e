#include "pipeline/io/journal_file.h"

#include <algorithm>
#include <span>

#include "pipeline/io/output_folder.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {

Result<JournalFile::Found> JournalFile::open_existing() {
  BOOST_OUTCOME_TRY(FoundFile there, open_own(kCurrentFolder, path_, kOpenReadWrite, path_));
  if (!there.file) return Found{std::move(there.strange), false};
  if (!try_lock(there.file.get(), Lock::kExclusive)) return Found{{}, true};
  file_ = std::move(there.file);
  if (!is_there()) file_ = Descriptor();  // its owner has removed it before the lock
  return Found{};
}

Result<bool> JournalFile::create() {
  if (!file_) {
    file_ = open_file(kCurrentFolder, path_, kOpenReadWrite | kOpenCreate | kOpenNew, kOwnMode);
    if (!file_ && errno == EEXIST) return false;
    if (!file_) return io_error(path_, "create the journal", errno);
    if (!try_lock(file_.get(), Lock::kExclusive)) {
      file_ = Descriptor();  // another process has found and locked it already
      return false;
    }
  }
  if (retry([&] { return system_calls().resize(file_.get(), 0); }) < 0)
    return io_error(path_, "empty the journal", errno);
  return true;
}

Result<std::string> JournalFile::read(std::uint64_t most) const {
  FileStatus info;
  if (!get_status(file_.get(), info)) return io_error(path_, "stat the journal", errno);
  std::string text(std::min(info.bytes, most), '\0');
  const auto into = std::as_writable_bytes(std::span(text));
  BOOST_OUTCOME_TRY(read_all({file_.get(), 0, into.data(), into.size(), into.size()}, path_));
  return text;
}

Status JournalFile::write(std::uint64_t offset, std::string_view bytes) const {
  return write_all(file_.get(), path_, offset, std::as_bytes(std::span(bytes)));
}

Status JournalFile::truncate(std::uint64_t bytes) const {
  if (retry([&] { return system_calls().resize(file_.get(), bytes); }) < 0)
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
  FileStatus opened, named;
  return file_ && get_status(file_.get(), opened) && get_status(kCurrentFolder, path_, Links::kNoFollow, named) &&
         named.is_same_file(opened);
}

void JournalFile::remove() {
  if (!file_) return;
  remove_file(kCurrentFolder, path_);
  file_ = Descriptor();
}

}  // namespace ggufmill
