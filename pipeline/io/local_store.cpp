// The output store for local files.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <map>
#include <optional>
#include <set>

#include "pipeline/core/text.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/services.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/threads.h"
#include "pipeline/io/write_gate.h"

namespace ggufmill {
namespace {

class Files final : public OutputStore {
 public:
  explicit Files(std::vector<StoredFile> planned)
      : planned_(std::move(planned)), files_(planned_.size()), gates_(planned_.size()) {}

  ~Files() override { stop_reserving(); }

  // Opens all files, on at most `threads` threads. What takes long to reserve is reserved later, between the writes.
  Status open(const AtomicFile::Options& options, unsigned threads) {
    std::vector<Status> opened(files_.size(), ok());
    std::atomic<std::size_t> next{0};
    on_threads(static_cast<unsigned>(std::min<std::size_t>(threads, files_.size())), [&] {
      for (std::size_t i; (i = next++) < files_.size();) opened[i] = open(i, options);
    });
    for (const Status& status : opened) {
      BOOST_OUTCOME_TRY(status);
    }
    return start_reserving();
  }

  Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) override {
    return files_[file]->write(offset, from);
  }

  void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                   Completion done) override {
    gates_[file].start(io, *files_[file], offset, from, std::move(done));
  }

  std::vector<std::string> findings() const override {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < gates_.size(); ++i)
      if (const std::string found = gates_[i].findings(); !found.empty())
        all.push_back(fmt::format("{}: writes {}", quoted_name(planned_[i].path), found));
    return all;
  }

  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const override {
    return files_[file]->read(offset, into);
  }

  Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) override {
    std::vector<FileId> ids;
    stop_reserving();  // all is written
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
    stop_reserving();
    for (const auto& file : files_)
      if (file) file->keep();
  }

  Status leave() override {
    finish_reserving();
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

  // An error is also that of the file's writes.
  Status start_reserving() {
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      BOOST_OUTCOME_TRY(const bool all, files_[i]->reserve_more());
      if (!all) rest.push_back(i);
    }
    if (rest.empty()) return ok();
    const BlockedSignals blocked;
    reserving_.emplace(1);
    boost::asio::post(reserving_->context(), [this, rest] {
      for (const std::size_t i : rest) {
        bool is_over = false;
        const auto reserve = [&] {
          const auto all = files_[i]->reserve_more();
          is_over = !all || all.value();
        };
        while (!is_over && gates_[i].when_idle(reserve)) {
        }
      }
    });
    return ok();
  }

  void finish_reserving() { reserving_.reset(); }

  void stop_reserving() {
    for (WriteGate& gate : gates_) gate.cancel();
    finish_reserving();
  }

  const std::vector<StoredFile> planned_;
  std::vector<std::unique_ptr<AtomicFile>> files_;
  std::vector<WriteGate> gates_;  // one per file
  std::optional<IoThreads> reserving_;
};

Result<std::unique_ptr<OutputStore>> open_store(std::vector<StoredFile> planned, const StoreOptions& options,
                                                bool attach) {
  auto files = std::make_unique<Files>(std::move(planned));
  const AtomicFile::Options each{.overwrite = options.overwrite,
                                 .mode = options.mode,
                                 .identity = options.identity,
                                 .attach = attach,
                                 .only_owner_writes = options.only_owner_writes,
                                 .reserve_later = true};
  if (const Status opened = files->open(each, options.threads); !opened) {
    if (attach) files->keep();  // the files belong to an earlier run
    return opened.error();
  }
  return std::unique_ptr<OutputStore>(std::move(files));
}

std::optional<FileStatus> look(const std::string& path) {
  FileStatus info;
  if (!get_status(kCurrentFolder, path, Links::kNoFollow, info)) return {};
  return info;
}

bool has_id(const std::string& path, const FileId& id) {
  const auto info = look(path);
  return info && FileId{info->device, info->inode} == id;
}

// Returns the number of bytes already allocated on the disk that a run of the plan would take over.
std::uint64_t reserved_before(const std::string& output, const std::string& identity) {
  const auto info = look(temporary_path(output, identity));
  return info ? info->blocks * 512 : 0;
}

// The space needed by all outputs on one disk.
struct Need {
  fs::path folder;
  std::uint64_t bytes = 0;
};

// AtomicFile describes how each file is created.
class LocalStore final : public StoreScheme {
 public:
  std::string_view name() const override { return {}; }
  // Leftover files of an earlier run that are not owned exclusively by this user are left untouched: another temporary
  // name is used, and warnings() reports it.
  Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override {
    return open_store(std::move(files), options, false);
  }
  Status check_target(const std::string& path, bool overwrite) const override {
    return check_local_target(path, overwrite);
  }
  void check_space(std::span<const StoredFile> files, const StoreOptions& options, Diagnostics& errors) const override;

  // The later of ctime and mtime, since mtime can be set back.
  std::optional<std::int64_t> touched_at(const std::string& path) const override {
    FileStatus info;
    if (!get_status(kCurrentFolder, path, Links::kFollow, info)) return {};
    return std::max(info.changed, info.modified);
  }

  std::string journal_path(const std::string& output, const std::string& identity) const override {
    return temporary_path(output, identity + std::string(kJournalEnd));
  }
  Result<std::unique_ptr<OutputStore>> attach(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override {
    return open_store(std::move(files), options, true);
  }
  std::string why_not_attachable(const StoredFile& file, const std::string& identity) const override;
  SealedFile find_sealed(const StoredFile& file, const std::string& identity, const FileId& id) const override {
    const auto is = [&](const std::string& path) {
      const auto info = look(path);
      return info && why_not_own(*info).empty() && FileId{info->device, info->inode} == id;
    };
    if (is(file.path)) return SealedFile::kPublished;
    return is(temporary_path(file.path, identity)) ? SealedFile::kUnfinished : SealedFile::kMissing;
  }
  Status finish_publishing(std::span<const StoredFile> files, std::span<const FileId> ids,
                           const StoreOptions& options) const override;
  std::vector<UnfinishedFile> find_unfinished(std::span<const std::string> outputs,
                                              std::span<const std::string> endings) const override;
  Status remove_unfinished(const std::string& path) const override {
    if (!remove_file(kCurrentFolder, path) && errno != ENOENT)
      return io_error(path, "remove the leftover file of an earlier run", errno);
    return ok();
  }
};

void LocalStore::check_space(std::span<const StoredFile> files, const StoreOptions& options,
                             Diagnostics& errors) const {
  std::map<std::uint64_t, Need> disks;  // by device
  for (const StoredFile& file : files) {
    const fs::path folder = folder_above(file.path);
    FileStatus info;
    if (kernel_calls().status_at(kCurrentFolder, folder.c_str(), Links::kFollow, &info) != 0) continue;
    Need& need = disks.try_emplace(info.device, Need{folder, 0}).first->second;
    need.bytes += file.bytes - std::min(file.bytes, reserved_before(file.path, options.identity));
  }
  for (const auto& [device, need] : disks) {
    std::error_code unknown;
    const fs::space_info space = fs::space(need.folder, unknown);
    if (!unknown && space.available < need.bytes)
      errors.add({ExitCode::kIo, need.folder.string(),
                  fmt::format("the outputs need {}, but only {} are free", human_bytes(need.bytes),
                              human_bytes(space.available)),
                  "", "free some space or write elsewhere"});
  }
}

std::string LocalStore::why_not_attachable(const StoredFile& file, const std::string& identity) const {
  const auto left = look(temporary_path(file.path, identity));
  if (!left) return fmt::format("its partial output for {} is missing", quoted_name(file.path));
  if (const std::string strange = why_not_own(*left); !strange.empty())
    return fmt::format("the file in place of its partial output for {} does not belong to this user alone: {}",
                       quoted_name(file.path), strange);
  if (left->bytes != file.bytes)
    return fmt::format("its partial output for {} has a different size", quoted_name(file.path));
  return {};
}

Status LocalStore::finish_publishing(std::span<const StoredFile> files, std::span<const FileId> ids,
                                     const StoreOptions& options) const {
  std::vector<StoredFile> unnamed;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string temporary = temporary_path(files[i].path, options.identity);
    if (!has_id(files[i].path, ids[i]))
      unnamed.push_back(files[i]);
    else if (!has_id(temporary, ids[i]))  // the file that was replaced, if any
      remove_file(kCurrentFolder, temporary);
  }
  BOOST_OUTCOME_TRY(const auto store, attach(std::move(unnamed), options));
  Status published = store->publish();
  if (!published) store->keep();
  return published;
}

std::vector<UnfinishedFile> LocalStore::find_unfinished(std::span<const std::string> outputs,
                                                        std::span<const std::string> endings) const {
  std::map<std::string, std::string> beginnings;  // outputs, by the common beginning of the names of files next to them
  std::set<std::string> folders;
  for (const std::string& output : outputs)
    // A long name is truncated to make room for the ending, so it begins differently for each kind of file.
    for (const std::string& ending : endings) {
      const std::string temporary = temporary_path(output, ending);
      beginnings.emplace(temporary.substr(0, temporary.rfind(kTemporaryMark)), output);
      folders.insert(temporary.substr(0, name_begin(temporary)));
    }
  std::vector<UnfinishedFile> found;
  for (const std::string& folder : folders) {
    int unreadable = 0;
    for (const std::string& name : names_in_folder(folder.empty() ? "." : folder, unreadable)) {
      const std::string path = folder + name;
      const std::size_t mark = path.rfind(kTemporaryMark);
      const auto output = mark == path.npos ? beginnings.end() : beginnings.find(path.substr(0, mark));
      std::error_code error;
      if (output == beginnings.end() || !fs::is_regular_file(path, error)) continue;
      found.push_back({path, output->second, path.substr(mark + kTemporaryMark.size()), fs::file_size(path, error),
                       is_locked(path)});
    }
  }
  return found;
}

}  // namespace

const StoreScheme& local_store() {
  static const LocalStore scheme;
  return scheme;
}

Error interrupted() { return {ExitCode::kInterrupted, "", "interrupted", "nothing was written", ""}; }

}  // namespace ggufmill
