#pragma once
// Outputs that several machines upload together, each of them whole chunks. For cluster jobs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/output_store.h"

namespace ggufmill {

// A chunk that the server has.
struct UploadedChunk {
  std::size_t file = 0;
  std::uint64_t number = 0;  // from 0: the chunk begins at number * chunk_bytes()
  std::string tag;           // the server's name for these bytes

  bool operator==(const UploadedChunk&) const = default;
  bool operator<(const UploadedChunk& other) const {
    return std::tie(file, number, tag) < std::tie(other.file, other.number, other.tag);
  }
};

// One machine's share of the uploads. Destroying it leaves what is uploaded.
class SharedUpload : public OutputStore {
 public:
  // Waits until all chunks that the machine had to write are uploaded, and returns them, sorted by file and number.
  virtual Result<std::vector<UploadedChunk>> finish() = 0;
};

// The uploads of a store scheme. All functions find the uploads by StoreOptions::identity and StoreOptions::records,
// which have to be the same on all machines. When all chunks are uploaded but some that one machine writes at the end,
// that machine calls vouch(), and then StoreScheme::attach(). Thread-safe.
class SharedUploads {
 public:
  virtual ~SharedUploads() = default;
  // Bytes of every chunk of a file but the last.
  virtual std::uint64_t chunk_bytes(std::uint64_t file_bytes) const = 0;
  // Starts the uploads that do not exist. Errors as for StoreScheme::create().
  virtual Status start(std::span<const StoredFile> files, const StoreOptions& options) const = 0;
  // Aborts the uploads and removes their records. Not an error if they do not exist.
  virtual Status abort(std::span<const StoredFile> files, const StoreOptions& options) const = 0;
  // Joins the uploads, to write the chunks in which `options.writes` has bytes. Those of `known` that the server has
  // are kept; `uploaded` is called for each other once it is uploaded, by one thread at a time. Exit code 2 if the
  // chunks need more memory than there is, 6 if an upload does not exist.
  virtual Result<std::unique_ptr<SharedUpload>> join(std::vector<StoredFile> files, const StoreOptions& options,
                                                     std::span<const UploadedChunk> known,
                                                     std::function<void(const UploadedChunk&)> uploaded) const = 0;
  // Returns the chunks that the server has, sorted by file and number; none of an upload that does not exist.
  virtual Result<std::vector<UploadedChunk>> list(std::span<const StoredFile> files,
                                                  const StoreOptions& options) const = 0;
  // Records that these chunks are right, so that attach() keeps them. Exit code 6 if an upload does not exist.
  virtual Status vouch(std::span<const StoredFile> files, std::span<const UploadedChunk> chunks,
                       const StoreOptions& options) const = 0;
};

}  // namespace ggufmill
