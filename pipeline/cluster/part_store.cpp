#include "pipeline/cluster/part_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sstream>

#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/output_folder.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/write_behind.h"
#include "pipeline/journal/output_claim.h"

namespace ggufmill {

// A file that other machines write to at the same time. It is written through one descriptor and read through another,
// because an NFS client that may read the file it writes first fills up pages from the server. Never memory-mapped.
class PartStore::File final : public WriteTarget {
 public:
  enum class Access { kRead, kWrite, kCreate };
  // Opens the file at `path`; `name` is used in messages.
  static Result<std::unique_ptr<File>> open(const std::string& path, std::string name, std::uint64_t bytes, IoMode mode,
                                            Access access) {
    std::unique_ptr<File> file(new File(std::move(name), mode));
    const auto open = [&](unsigned how) {
      return open_file(kCurrentFolder, path, how | kOpenNoFollow | kOpenNoWaiting, kOwnMode);
    };
    const bool creates = access == Access::kCreate, writes = creates || access == Access::kWrite;
    if (writes) file->write_ = open(kOpenWrite | (creates ? kOpenCreate : 0u));
    if (!writes || file->write_) file->read_ = open(kOpenRead);
    if (!file->read_) return io_error(file->name_, "open the partial output of the parts", errno);
    FileStatus info;
    if (!get_status(file->read_.get(), info))
      return io_error(file->name_, "read the attributes of the partial output of the parts", errno);
    if (const std::string strange = why_not_own(info); !strange.empty())
      return Error{ExitCode::kIo, file->name_, "the partial output of the parts may belong to another user",
                   fmt::format("{}: {}", quoted_name(path), strange), ""};
    if (creates && retry([&] { return system_calls().resize(file->write_.get(), bytes); }) < 0)
      return io_error(file->name_, "set the size of the file", errno);
    if (creates) info.bytes = bytes;
    if (info.bytes != bytes)
      return Error{ExitCode::kIo, file->name_,
                   fmt::format("the partial output of the parts has {} bytes, not {}", info.bytes, bytes), "", ""};
    file->inode_ = info.inode;
    return file;
  }
  std::uint64_t inode() const { return inode_; }

  const std::string& path() const override { return name_; }
  Result<Transfer> begin_write(std::uint64_t offset, std::span<const std::byte> from) override {
    return Transfer{write_.get(), offset, const_cast<std::byte*>(from.data()), from.size(), from.size()};
  }
  void end_write(std::uint64_t offset, std::size_t bytes) override { behind_.wrote(write_.get(), offset, bytes); }
  Status read(std::uint64_t offset, std::span<std::byte> into) const {
    return read_all({read_.get(), offset, into.data(), into.size(), into.size()}, name_);
  }
  Status sync() {
    if (sync_to_disk(write_.get()) < 0) return io_error(name_, "flush the file to the disk (fsync)", errno);
    behind_.drop_all(write_.get());
    return ok();
  }

 private:
  File(std::string name, IoMode mode) : name_(std::move(name)), behind_(mode) {}

  const std::string name_;
  std::uint64_t inode_ = 0;
  Descriptor write_, read_;
  WriteBehind behind_;
};

namespace {

Status remove_part_file(const std::string& path) {
  if (!remove_file(kCurrentFolder, path) && errno != ENOENT) return io_error(path, "remove the file", errno);
  return ok();
}

// The pieces of one write. The write is done when all pieces are.
struct Pieces {
  std::atomic<std::size_t> left;
  std::mutex mutex;
  Status status = ok();  // guarded by `mutex`
  OutputStore::Completion done;

  void ended(const Status& piece) {
    if (!piece) {
      const std::lock_guard lock(mutex);
      if (status) status = piece;
    }
    if (--left == 0) done(status);
  }
};

}  // namespace

PartStore::PartStore(const Plan& plan, const ClusterJob& job, std::size_t part, const std::string& attempt)
    : job_(job),
      part_(part),
      attempt_(attempt),
      places_(std::move(places_of(plan, job.cuts, part, 1).front())),
      chunk_list_(job.part_file(part, "chunks." + attempt)) {}

PartStore::~PartStore() = default;

Result<std::unique_ptr<PartStore>> PartStore::open(const Plan& plan, const ClusterJob& job, std::size_t part,
                                                   const std::string& attempt) {
  std::unique_ptr<PartStore> store(new PartStore(plan, job, part, attempt));
  const std::vector<StoredFile> stored = stored_files(plan);
  store->files_.resize(stored.size());
  if (uploads_of(plan)) {
    BOOST_OUTCOME_TRY(store->join(plan));
    BOOST_OUTCOME_TRY(store->open_edges());
    return store;
  }
  // Written data is not needed again, so keeping it in this machine's page cache is useless.
  const IoMode mode = plan.limits.io == IoMode::kCached ? IoMode::kCached : IoMode::kStreaming;
  for (const std::size_t i : store->places_.files) {
    auto file = File::open(temporary_path(stored[i].path, job.key()), stored[i].path, stored[i].bytes, mode,
                           File::Access::kWrite);
    if (!file) {
      Error error = file.error();
      error.help = fmt::format(
          "`ggufmill status {0}` shows the progress of the job; if its files were removed, `ggufmill resume {0}` "
          "starts over",
          job.array_folder);
      return error;
    }
    store->files_[i] = std::move(file).value();
  }
  BOOST_OUTCOME_TRY(store->open_edges());
  return store;
}

namespace {

std::string line_of(const UploadedChunk& chunk) {
  return fmt::format("{} {} {}\n", chunk.file, chunk.number, chunk.tag);
}

constexpr std::uint64_t kMaxListBytes = 64 << 20;  // a chunk takes less than 100

// Returns the chunks that attempts at the part have uploaded. Lines that are incomplete, as a kill leaves them, name
// tags that no server has.
std::vector<UploadedChunk> read_chunk_lists(const ClusterJob& job, std::size_t part) {
  std::vector<UploadedChunk> chunks;
  for (const std::string& name : part_files(job, fmt::format("{}.chunks.", part))) {
    const auto text = read_text_file(job.file("parts/" + name), kMaxListBytes);
    if (!text) continue;
    std::istringstream lines(text.value());
    lines.exceptions(std::ios::badbit);  // lets std::bad_alloc through
    UploadedChunk chunk;
    while (lines >> chunk.file >> chunk.number >> chunk.tag) chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace

Status write_chunk_list(const ClusterJob& job, std::size_t part, const std::string& attempt,
                        const std::vector<UploadedChunk>& chunks) {
  std::string text;
  for (const UploadedChunk& chunk : chunks) text += line_of(chunk);
  return write_own_text(job.part_file(part, "chunks." + attempt), text, true);
}

Status PartStore::join(const Plan& plan) {
  const std::vector<UploadedChunk> known = read_chunk_lists(job_, part_);
  BOOST_OUTCOME_TRY(const bool is_created, chunk_list_.create());
  if (!is_created) return being_written(chunk_list_.path());
  StoreOptions options = store_options_of(job_, plan);
  options.writes = writes_outside_edges(plan, job_.range(part_), places_);
  // Without its line in the list, a later attempt uploads the chunk again.
  const auto uploaded = [this](const UploadedChunk& chunk) {
    const std::string line = line_of(chunk);
    if (chunk_list_.write(chunk_list_end_, line)) chunk_list_end_ += line.size();
  };
  auto upload = uploads_of(plan)->join(stored_files(plan), options, known, uploaded);
  if (upload) {
    upload_ = std::move(upload).value();
    for (const UploadedChunk& chunk : known) uploaded(chunk);
    return ok();
  }
  Error error = upload.error();
  if (error.code == ExitCode::kIo && error.help.empty())
    error.help = fmt::format("`ggufmill resume {}` starts what is missing", job_.array_folder);
  return error;
}

Status PartStore::open_edges() {
  if (places_.edge_bytes == 0) return ok();
  const std::string path = job_.part_file(part_, "edges." + attempt_);
  std::string before;  // an edge file of full size; any will do, since the contents are verified
  for (const std::string& name : part_files(job_, fmt::format("{}.edges", part_))) {
    std::error_code error;
    const std::string other = job_.file("parts/" + name);
    if (other != path && fs::file_size(other, error) == places_.edge_bytes && !error) before = other;
  }
  std::error_code error;
  if (!before.empty()) fs::copy_file(before, path, fs::copy_options::overwrite_existing, error);
  BOOST_OUTCOME_TRY(edge_file_, File::open(path, path, places_.edge_bytes, IoMode::kCached, File::Access::kCreate));
  return ok();
}

Result<std::unique_ptr<PartStore>> PartStore::view(const Plan& plan, const ClusterJob& job, std::size_t part) {
  std::unique_ptr<PartStore> store(new PartStore(plan, job, part, {}));
  const std::vector<StoredFile> stored = stored_files(plan);
  store->files_.resize(stored.size());
  constexpr auto kRead = File::Access::kRead;
  for (const std::size_t i : store->places_.files) {
    const std::string path = temporary_path(stored[i].path, job.key());
    BOOST_OUTCOME_TRY(store->files_[i], File::open(path, path, stored[i].bytes, IoMode::kCached, kRead));
  }
  if (store->places_.edge_bytes == 0) return store;
  const std::string path = job.part_file(part, "edges");
  BOOST_OUTCOME_TRY(store->edge_file_, File::open(path, path, store->places_.edge_bytes, IoMode::kCached, kRead));
  return store;
}

std::vector<std::uint64_t> PartStore::inodes() const {
  std::vector<std::uint64_t> inodes;
  for (const std::size_t i : places_.files)
    if (files_[i]) inodes.push_back(files_[i]->inode());
  return inodes;
}

bool PartStore::holds(std::size_t file, std::uint64_t offset, std::uint64_t bytes) const {
  bool has_edge = false;
  for_pieces(file, offset, bytes, [&](bool in_edge, std::uint64_t, std::size_t, std::size_t) { has_edge |= in_edge; });
  return !has_edge && upload_->holds(file, offset, bytes);
}

// Splits a range into pieces at the boundaries of edges and calls f(in_edge_file, position, first, bytes) for each:
// `position` is the offset in the edge file or the output file, `first` the offset within the range.
template <class F>
void PartStore::for_pieces(std::size_t file, std::uint64_t offset, std::size_t bytes, const F& f) const {
  const auto is_before = [&](const Edge& edge, std::uint64_t at) {
    return std::pair(edge.file, edge.offset + edge.bytes) <= std::pair(file, at);
  };
  auto edge = std::lower_bound(places_.edges.begin(), places_.edges.end(), offset, is_before);
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t at = offset + done, left = bytes - done;
    const bool is_near = edge != places_.edges.end() && edge->file == file;
    if (is_near && edge->offset <= at) {
      const std::uint64_t count = std::min(left, edge->offset + edge->bytes - at);
      f(true, edge->at + (at - edge->offset), done, count);
      done += count;
      ++edge;
    } else {
      const std::uint64_t count = is_near ? std::min(left, edge->offset - at) : left;
      f(false, at, done, count);
      done += count;
    }
  }
}

Status PartStore::write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) {
  Status status = ok();
  for_pieces(file, offset, from.size(), [&](bool in_edge, std::uint64_t at, std::size_t first, std::size_t bytes) {
    if (!status) return;
    const auto piece = from.subspan(first, bytes);
    status = in_edge   ? edge_file_->write(at, piece)
             : upload_ ? upload_->write(file, at, piece)
                       : files_[file]->write(at, piece);
  });
  return status;
}

void PartStore::start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                            Completion done) {
  std::size_t count = 0;
  for_pieces(file, offset, from.size(), [&](bool, std::uint64_t, std::size_t, std::size_t) { ++count; });
  const auto pieces = std::make_shared<Pieces>();
  pieces->left = count;
  pieces->done = std::move(done);
  std::size_t begun = 0;
  for_pieces(file, offset, from.size(), [&](bool in_edge, std::uint64_t at, std::size_t first, std::size_t bytes) {
    try {
      const auto piece = from.subspan(first, bytes);
      const auto ended = [pieces](const Status& status) { pieces->ended(status); };
      if (upload_ && !in_edge)
        upload_->start_write(io, file, at, piece, ended);
      else
        io.write(in_edge ? *edge_file_ : *files_[file], at, piece, ended);
      ++begun;
    } catch (...) {  // this piece has not started; if no piece has, neither has the write
      if (begun == 0) throw;
      pieces->ended(error_of_exception());
    }
  });
}

Status PartStore::read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const {
  Status status = ok();
  for_pieces(file, offset, into.size(), [&](bool in_edge, std::uint64_t at, std::size_t first, std::size_t bytes) {
    if (status) status = (in_edge ? *edge_file_ : *files_[file]).read(at, into.subspan(first, bytes));
  });
  return status;
}

Result<std::vector<FileId>> PartStore::seal(std::span<const std::uint64_t>) {
  return Error{ExitCode::kInternal, "", "a part cannot seal the outputs", "",
               "this is a bug in ggufmill: please report it"};
}

Status PartStore::publish() { return seal({}).error(); }

Status PartStore::leave() {
  for (const auto& file : files_)
    if (file) {
      BOOST_OUTCOME_TRY(file->sync());
    }
  if (upload_) {
    BOOST_OUTCOME_TRY(chunks_, upload_->finish());
  }
  return edge_file_ ? edge_file_->sync() : ok();
}

Status PartStore::publish_edges() {
  const std::string own = fmt::format("{}.edges.{}", part_, attempt_), last = fmt::format("{}.edges", part_);
  const std::string from = job_.file("parts/" + own), to = job_.file("parts/" + last);
  const auto rename = [&] {
    return system_calls().rename(kCurrentFolder, from.c_str(), kCurrentFolder, to.c_str(), Rename::kReplace);
  };
  if (edge_file_ && retry(rename) < 0) return io_error(to, "rename the file", errno);
  BOOST_OUTCOME_TRY(const OutputFolder folder, OutputFolder::open(job_.file("parts")));
  return folder.sync();
}

void PartStore::remove_attempts() const {
  for (const char* kind : {"edges", "chunks"})
    for (const std::string& name : part_files(job_, fmt::format("{}.{}.", part_, kind)))
      static_cast<void>(remove_part_file(job_.file("parts/" + name)));
}

namespace {

bool is_there(const StoredFile& file, const ClusterJob& job) {
  FileStatus info;
  const std::string path = temporary_path(file.path, job.key());
  return get_status(kCurrentFolder, path, Links::kNoFollow, info) && why_not_own(info).empty() &&
         info.bytes == file.bytes;
}

// Fails if the store had to use other names than the usual temporary ones: parts find the files only by those.
Status check_names(const OutputStore& store) {
  const std::vector<std::string> warnings = store.warnings();
  if (warnings.empty()) return ok();
  return Error{ExitCode::kIo, "", "the temporary name of an output is taken by a file that may belong to another user",
               warnings.front(), "remove that file, or write the outputs to another folder"};
}

}  // namespace

Status create_outputs(const ClusterJob& job, const Plan& plan) {
  std::vector<StoredFile> missing = stored_files(plan);
  if (const SharedUploads* uploads = uploads_of(plan)) return uploads->start(missing, store_options_of(job, plan));
  std::erase_if(missing, [&](const StoredFile& file) { return is_there(file, job); });
  if (missing.empty()) return ok();
  BOOST_OUTCOME_TRY(const auto store, local_store().create(missing, store_options_of(job, plan)));
  BOOST_OUTCOME_TRY(check_names(*store));
  Status made = ok();
  for (const StoredFile& file : missing)
    if (made) made = write_claim(file.path, {job.key(), job.folder, job.array_folder});
  if (made) made = store->leave();
  if (!made)
    for (const StoredFile& file : missing) static_cast<void>(remove_claim(file.path, job.key()));
  return made;
}

Status remove_outputs(const ClusterJob& job, const Plan& plan) {
  if (const SharedUploads* uploads = uploads_of(plan))
    return uploads->abort(stored_files(plan), store_options_of(job, plan));
  for (const StoredFile& file : stored_files(plan)) {
    BOOST_OUTCOME_TRY(remove_part_file(temporary_path(file.path, job.key())));
    BOOST_OUTCOME_TRY(remove_claim(file.path, job.key()));
  }
  return ok();
}

std::vector<std::string> part_files(const ClusterJob& job, const std::string& beginning) {
  int unreadable = 0;
  std::vector<std::string> names = names_in_folder(job.file("parts"), unreadable);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(beginning); });
  return names;
}

}  // namespace ggufmill
