// The output store of files of this machine.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/io/atomic_file.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/threads.h"

namespace ggufmill {
namespace {

// What the user has to know about the outputs that were published before a later one failed.
Error with_sealed(Error error, std::size_t sealed, std::size_t files) {
  if (sealed == 0) return error;
  if (!error.detail.empty()) error.detail += "\n";
  error.detail += fmt::format("{} of {} output files had been finished and stay", sealed, files);
  return error;
}

class Files final : public OutputStore {
 public:
  explicit Files(std::vector<StoredFile> planned) : planned_(std::move(planned)), files_(planned_.size()) {}

  // Opens all on as many threads as the options say.
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

  Status seal(std::span<const std::uint64_t> written, const std::atomic<bool>* stop) override {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (stop && *stop) return interrupted(i, files_.size());
      const Status status = files_[i]->seal(std::as_bytes(std::span(planned_[i].header)), written[i]);
      if (!status) return with_sealed(status.error(), i, files_.size());
    }
    return ok();
  }

  Status leave() override {
    for (const auto& file : files_) {
      BOOST_OUTCOME_TRY(file->leave());
    }
    return ok();
  }

 private:
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
  BOOST_OUTCOME_TRY(files->open(each, options.threads));
  return std::unique_ptr<OutputStore>(std::move(files));
}

}  // namespace

Result<std::unique_ptr<OutputStore>> LocalStore::create(std::vector<StoredFile> files, const Options& options) {
  return open_store(std::move(files), options, false);
}

Result<std::unique_ptr<OutputStore>> LocalStore::attach(std::vector<StoredFile> files, const Options& options) {
  return open_store(std::move(files), options, true);
}

Error interrupted(std::size_t sealed, std::size_t files) {
  return with_sealed({ExitCode::kInterrupted, "", "interrupted", sealed == 0 ? "nothing was written" : "", ""}, sealed,
                     files);
}

}  // namespace ggufmill
