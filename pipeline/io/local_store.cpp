// The output store for local files.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/threads.h"

namespace ggufmill {
namespace {

class Files final : public OutputStore {
 public:
  explicit Files(std::vector<StoredFile> planned) : planned_(std::move(planned)), files_(planned_.size()) {}

  // Opens all files, on at most `threads` threads.
  Status open(const AtomicFile::Options& options, unsigned threads) {
    std::vector<Status> opened(files_.size(), ok());
    std::atomic<std::size_t> next{0};
    on_threads(static_cast<unsigned>(std::min<std::size_t>(threads, files_.size())), [&] {
      for (std::size_t i; (i = next++) < files_.size();) opened[i] = open(i, options);
    });
    for (const Status& status : opened) {
      BOOST_OUTCOME_TRY(status);
    }
    return ok();
  }

  Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) override {
    return files_[file]->write(offset, from);
  }

  void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                   Completion done) override {
    io.write(*files_[file], offset, from, std::move(done));
  }

  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const override {
    return files_[file]->read(offset, into);
  }

  Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) override {
    std::vector<FileId> ids;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      BOOST_OUTCOME_TRY(files_[i]->finish(std::as_bytes(std::span(planned_[i].header)), written[i]));
      BOOST_OUTCOME_TRY(const FileId id, files_[i]->id());
      ids.push_back(id);
    }
    return ids;
  }

  Result<bool> is_as_left() override {
    bool all = true;
    for (const auto& file : files_) {
      BOOST_OUTCOME_TRY(const bool one, file->is_as_left());
      all = all && one;
    }
    return all;
  }

  Status publish() override {
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (const Status status = files_[i]->publish(files_.size() > 1); !status) return without_names(status.error(), i);
    for (const auto& file : files_) {
      BOOST_OUTCOME_TRY(file->settle());
    }
    return ok();
  }

  void keep() override {
    for (const auto& file : files_)
      if (file) file->keep();
  }

  Status leave() override {
    for (const auto& file : files_) {
      BOOST_OUTCOME_TRY(file->leave());
    }
    return ok();
  }

  std::vector<std::string> warnings() const override {
    std::vector<std::string> all;
    for (const auto& file : files_)
      if (!file->warning().empty()) all.push_back(file->warning());
    return all;
  }

 private:
  // Returns `error`, after the first `published` files have been given their temporary names back.
  Error without_names(Error error, std::size_t published) {
    std::vector<std::string> stay;
    for (std::size_t i = published; i-- > 0;)
      if (!files_[i]->take_back()) stay.push_back(quoted_name(files_[i]->path()));
    if (stay.empty()) return error;
    if (!error.detail.empty()) error.detail += "\n";
    error.detail += fmt::format("{} of {} output files are already in place and are kept: {}", stay.size(),
                                files_.size(), fmt::join(stay, ", "));
    return error;
  }

  Status open(std::size_t i, const AtomicFile::Options& options) {
    BOOST_OUTCOME_TRY(files_[i], AtomicFile::create(planned_[i].path, planned_[i].bytes, options));
    return ok();
  }

  const std::vector<StoredFile> planned_;
  std::vector<std::unique_ptr<AtomicFile>> files_;
};

Result<std::unique_ptr<OutputStore>> open_store(std::vector<StoredFile> planned, const LocalStore::Options& options,
                                                bool attach) {
  auto files = std::make_unique<Files>(std::move(planned));
  const AtomicFile::Options each{options.overwrite, options.mode, options.identity, attach};
  if (const Status opened = files->open(each, options.threads); !opened) {
    if (attach) files->keep();  // the files belong to an earlier run
    return opened.error();
  }
  return std::unique_ptr<OutputStore>(std::move(files));
}

}  // namespace

Result<std::unique_ptr<OutputStore>> LocalStore::create(std::vector<StoredFile> files, const Options& options) {
  return open_store(std::move(files), options, false);
}

Result<std::unique_ptr<OutputStore>> LocalStore::attach(std::vector<StoredFile> files, const Options& options) {
  return open_store(std::move(files), options, true);
}

Status LocalStore::finish_publishing(std::span<const StoredFile> files, std::span<const FileId> ids,
                                     const Options& options) {
  std::vector<StoredFile> unnamed;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string temporary = temporary_path(files[i].path, options.identity);
    const auto is_sealed = [&](const std::string& path) {
      struct stat info {};
      const auto call = [&] { return system_calls().fstatat(AT_FDCWD, path.c_str(), &info, AT_SYMLINK_NOFOLLOW); };
      return retry(call) == 0 && FileId{info.st_dev, info.st_ino} == ids[i];
    };
    if (!is_sealed(files[i].path))
      unnamed.push_back(files[i]);
    else if (!is_sealed(temporary))  // the file that was replaced, if any
      retry([&] { return system_calls().unlinkat(AT_FDCWD, temporary.c_str(), 0); });
  }
  BOOST_OUTCOME_TRY(const auto store, attach(std::move(unnamed), options));
  Status published = store->publish();
  if (!published) store->keep();
  return published;
}

Error interrupted() { return {ExitCode::kInterrupted, "", "interrupted", "nothing was written", ""}; }

}  // namespace ggufmill
