#pragma once
// The outputs of a part: bytes in files or uploads that other machines write to at the same time, and edges in a file
// of their own.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/cluster/edges.h"
#include "pipeline/io/journal_file.h"
#include "pipeline/io/output_store.h"

namespace ggufmill {

// Gives access only to the files and bytes of one part; reading or writing any others is a bug in the caller. seal()
// and publish() are not available for a part and fail with exit code 1; see seal.h. Each attempt has a separate edge
// file.
class PartStore final : public OutputStore {
 public:
  // Opens the job's files, which create_outputs() has made, and copies the edges of an earlier attempt, which the
  // ledger verifies. Fails with exit code 6 if a file of the job is missing. The plan must outlive the store.
  static Result<std::unique_ptr<PartStore>> open(const Plan& plan, const ClusterJob& job, std::size_t part,
                                                 const std::string& attempt);
  // Opens the store of a part that is done, for reading only. Its edge file is the published one, without an attempt in
  // its name.
  static Result<std::unique_ptr<PartStore>> view(const Plan& plan, const ClusterJob& job, std::size_t part);
  ~PartStore() override;

  Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) override;
  void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                   Completion done) override;
  bool is_readable() const override { return !upload_; }
  // Bytes in an edge have to be written again: what an earlier attempt has stored of them cannot be verified.
  bool holds(std::size_t file, std::uint64_t offset, std::uint64_t bytes) const override;
  std::uint64_t memory() const override { return upload_ ? upload_->memory() : 0; }
  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const override;
  Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) override;
  Status publish() override;
  void keep() override {}
  // Flushes all files to the disk, and waits for all uploads.
  Status leave() override;

  // Renames the attempt's edge file to the part's published name. Call it after leave().
  Status publish_edges();
  // Returns the inodes of the output files that the part writes to, in output order; empty if the outputs are uploads.
  std::vector<std::uint64_t> inodes() const;
  // Returns the uploaded chunks. Call it after leave(); empty if the outputs are files.
  const std::vector<UploadedChunk>& chunks() const { return chunks_; }
  // Removes the edge files and lists of chunks of all attempts. Call it when the part is done.
  void remove_attempts() const;

 private:
  class File;
  PartStore(const Plan& plan, const ClusterJob& job, std::size_t part, const std::string& attempt);
  Status open_edges();
  Status join(const Plan& plan);
  template <class F>
  void for_pieces(std::size_t file, std::uint64_t offset, std::size_t bytes, const F& f) const;

  const ClusterJob job_;
  const std::size_t part_;
  const std::string attempt_;
  PartPlaces places_;
  std::vector<std::unique_ptr<File>> files_;  // null if the part does not write to it; none if there are uploads
  std::unique_ptr<File> edge_file_;           // null if the part has no edges
  JournalFile chunk_list_;                    // the chunks that this attempt has uploaded
  std::uint64_t chunk_list_end_ = 0;
  std::vector<UploadedChunk> chunks_;
  std::unique_ptr<SharedUpload> upload_;  // null if the outputs are files
};

// Writes the chunks that an attempt at a part has uploaded, for later attempts.
Status write_chunk_list(const ClusterJob& job, std::size_t part, const std::string& attempt,
                        const std::vector<UploadedChunk>& chunks);

// Creates the output files of a job that are missing or have the wrong size, and the claims next to them
// (output_claim.h). The files get their full size, and their disk space is reserved if the file system supports it.
// Existing files with the right size stay unchanged. For outputs that are objects, starts the uploads that do not
// exist.
Status create_outputs(const ClusterJob& job, const Plan& plan);
// Removes the output files and their claims, or the uploads, if they exist.
Status remove_outputs(const ClusterJob& job, const Plan& plan);

// Returns the names of the files in the job's parts folder that begin with `beginning`, sorted.
std::vector<std::string> part_files(const ClusterJob& job, const std::string& beginning);

}  // namespace ggufmill
