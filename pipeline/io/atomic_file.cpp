#include "pipeline/io/atomic_file.h"

#include <fmt/format.h>

#include <atomic>

#include "pipeline/io/output_folder.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

class NewFile final : public AtomicFile {
 public:
  NewFile(std::string path, std::uint64_t bytes, bool overwrite, OutputFolder folder, TemporaryFile temporary)
      : path_(std::move(path)),
        bytes_(bytes),
        overwrite_(overwrite),
        folder_(std::move(folder)),
        temporary_(std::move(temporary)) {}

  const std::string& path() const override { return path_; }
  int descriptor() const override { return temporary_.descriptor(); }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override;
  Status seal(std::span<const std::byte> header, std::uint64_t data_bytes) override;
  Status check(std::uint64_t offset, std::uint64_t bytes) const override;
  void add_written(std::uint64_t bytes) override { written_ += bytes; }
  std::uint64_t written() const override { return written_; }

 private:
  Status sync() const;
  Error defect(std::string what) const;

  const std::string path_;
  const std::uint64_t bytes_;
  const bool overwrite_;
  std::atomic<std::uint64_t> written_{0};
  OutputFolder folder_;  // outlives the temporary in it
  TemporaryFile temporary_;
};

Error NewFile::defect(std::string what) const {
  return {ExitCode::kInternal, path_, std::move(what), "", "this is a defect of ggufmill: please report it"};
}

Status NewFile::check(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return ok();
  return defect(fmt::format("{} bytes at byte {:#x} do not lie in the {} planned", bytes, offset, bytes_));
}

Status NewFile::write(std::uint64_t offset, std::span<const std::byte> from) {
  BOOST_OUTCOME_TRY(check(offset, from.size()));
  BOOST_OUTCOME_TRY(write_all(descriptor(), path_, offset, from));
  add_written(from.size());
  return ok();
}

Status NewFile::sync() const {
  if (sync_to_disk(descriptor()) < 0) return io_error(path_, "flush the file to the disk (fsync)", errno);
  return ok();
}

Status NewFile::seal(std::span<const std::byte> header, std::uint64_t data_bytes) {
  if (written_ != data_bytes || data_bytes > bytes_ || header.size() > bytes_ - data_bytes)
    return defect(fmt::format("{} bytes of data were written and {} planned, with a header of {} in a file of {}",
                              written(), data_bytes, header.size(), bytes_));
  BOOST_OUTCOME_TRY(sync());
  BOOST_OUTCOME_TRY(write_all(descriptor(), path_, 0, header));
  BOOST_OUTCOME_TRY(sync());
  BOOST_OUTCOME_TRY(temporary_.publish(overwrite_));
  folder_.keep();
  return folder_.sync();
}

// A replaced file keeps its permissions: what was private stays so.
Status keep_permissions(const std::string& path, int descriptor, const std::optional<struct stat>& old) {
  if (!old || retry([&] { return system_calls().fchmod(descriptor, old->st_mode & 0777); }) == 0) return ok();
  return io_error(path, "set the permissions of the file", errno);
}

}  // namespace

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path, std::uint64_t bytes,
                                                       const Options& options) {
  BOOST_OUTCOME_TRY(const TargetPath target, split_target(path));
  BOOST_OUTCOME_TRY(check_target(path, options));
  BOOST_OUTCOME_TRY(OutputFolder folder, OutputFolder::open(target.folder));
  // Again, now that the path has all its folders: "new/../model.gguf" was nothing before.
  BOOST_OUTCOME_TRY(const std::optional<struct stat> old, check_target(path, options));
  BOOST_OUTCOME_TRY(TemporaryFile temporary, TemporaryFile::create(folder.descriptor(), target.name, path));
  BOOST_OUTCOME_TRY(temporary.reserve(bytes));
  BOOST_OUTCOME_TRY(keep_permissions(path, temporary.descriptor(), old));
  return std::unique_ptr<AtomicFile>(
      new NewFile(path, bytes, options.overwrite, std::move(folder), std::move(temporary)));
}

}  // namespace ggufmill
