#pragma once
// Outputs as objects of buckets: parts are uploaded as they fill, and a last request makes each object visible.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/io/memory.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/remote/part_map.h"
#include "pipeline/io/remote/upload_target.h"
#include "pipeline/io/services.h"
#include "pipeline/io/shared_uploads.h"

namespace ggufmill::remote {

// Returns how many bytes of memory the parts of these files get; exit code 2 if they may need more than there is in
// memory and in the spool.
Result<std::uint64_t> memory_for_parts(const PartMap& map, const StoreOptions& options);

// Space for the bytes of one part until it is uploaded, in memory or in a file of the spool folder. They begin as
// zeros. Reads and writes are thread-safe for disjoint ranges.
class PartSpace {
 public:
  // Exit code 75 if the system is out of memory.
  static Result<std::unique_ptr<PartSpace>> in_memory(std::size_t bytes);
  // A file without a name, so that a kill leaves nothing. Exit code 6 if the folder has no space, or may not be
  // written.
  static Result<std::unique_ptr<PartSpace>> in_folder(const std::string& folder, std::uint64_t bytes);

  Status write(std::uint64_t offset, std::span<const std::byte> from);
  Status read(std::uint64_t offset, std::span<std::byte> into) const;
  // All bytes; empty if they are in a file.
  std::span<const std::byte> bytes() const { return memory_.span(); }

 private:
  Buffer memory_;
  std::string folder_;
  Descriptor file_;
};

// Parts get space in the order in which the run begins to write them (PartMap). A write to a part that has none yet
// waits for an upload to finish, so the memory is bounded; writes to earlier parts never wait, so those get complete.
// With room for PartMap::most_open() bytes, the next part in order therefore always gets its space.
class MultipartStore final : public SharedUpload {
 public:
  // Requests are sent with `settings`, whose `abandoned` is ignored.
  MultipartStore(std::vector<StoredFile> files, PartMap map, std::vector<Target> targets, const StoreOptions& options,
                 const Settings& settings, std::uint64_t memory);
  // Aborts the uploads unless they are published or kept.
  ~MultipartStore() override;

  Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) override;
  void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                   Completion done) override;
  bool is_readable() const override { return false; }
  bool holds(std::size_t file, std::uint64_t offset, std::uint64_t bytes) const override;
  std::uint64_t memory() const override { return most_memory_; }
  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const override;
  Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) override;
  Result<std::vector<UploadedChunk>> finish() override;
  Status publish() override;
  void keep() override { is_kept_ = true; }
  Status leave() override;
  std::vector<std::string> warnings() const override { return warnings_; }
  // `uploaded` is called for each part that is uploaded, while the mutex is locked.
  void on_upload(std::function<void(const UploadedChunk&)> uploaded) { uploaded_part_ = std::move(uploaded); }
  void add_warning(std::string warning) { warnings_.push_back(std::move(warning)); }

 private:
  struct Write;
  // A range of a write that goes to one part.
  struct Piece {
    std::shared_ptr<Write> write;
    std::size_t part = 0;
    std::uint64_t offset = 0;  // in the part
    std::span<const std::byte> from;
  };
  struct Part {
    enum class State { kNoSpace, kOpen, kUploaded };
    State state = State::kNoSpace;
    bool is_spooled = false;
    std::uint64_t missing = 0;  // bytes that the run has not written yet
    std::mutex opening;
    std::unique_ptr<PartSpace> space;  // allocated by the first to use it
    std::vector<Piece> waiting;        // for space
  };
  static constexpr std::size_t kUploads = 4;  // at a time

  std::shared_ptr<Write> begin(std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                               Completion done);
  void run(const std::shared_ptr<Write>& write) noexcept;
  void place(std::vector<Piece> pieces);
  Status copy(const Piece& piece);
  Status open(std::size_t part);
  std::vector<Piece> grant(std::size_t wanted);
  void start_upload(std::size_t part);
  void upload(std::size_t part) noexcept;
  Status send_part(std::size_t part);
  std::vector<Piece> uploaded(std::size_t part);
  void fail(const Error& error) noexcept;
  Error failure() const;
  static void finish(const Piece& piece, const Status& status);
  Status upload_rest();
  Status wait_for_uploads();
  Settings last_settings() const;
  Status abort_uploads();

  const std::vector<StoredFile> files_;
  const PartMap map_;
  std::vector<Target> targets_;
  const bool overwrite_;
  const Spool spool_;
  const std::uint64_t most_memory_;
  std::atomic<bool> abandoned_{false};
  Settings settings_;
  std::vector<std::string> warnings_;
  std::function<void(const UploadedChunk&)> uploaded_part_;
  std::vector<bool> held_;                           // by part: an earlier run has uploaded it
  std::vector<std::vector<std::string>> etags_;      // by file and part number - 1; guarded by mutex_
  std::vector<std::atomic<std::uint64_t>> written_;  // bytes of each file

  std::mutex mutex_;  // guards everything below, and the states of the parts
  std::condition_variable changed_;
  std::vector<Part> parts_;
  std::size_t next_ = 0;               // the first part in order without space
  std::size_t wanted_ = 0;             // one past the last part that a write needs
  std::size_t left_ = 0;               // parts not uploaded yet
  std::size_t in_memory_uploads_ = 0;  // complete parts in memory
  std::uint64_t memory_used_ = 0, spool_used_ = 0;
  bool has_failed_ = false;
  std::optional<Error> failure_;  // none: out of memory
  bool is_kept_ = false, is_published_ = false;

  std::optional<IoThreads> uploads_;  // last: its threads use everything above
};

}  // namespace ggufmill::remote
