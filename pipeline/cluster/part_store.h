#pragma once
// The outputs of a part: bytes in files that other machines write at the same time, and hems beside them.

#include <memory>
#include <string>

#include "pipeline/cluster/hems.h"
#include "pipeline/io/output_store.h"

namespace ggufmill {

// Knows the files and the bytes of one part alone; writing or reading others is a defect. seal() and publish() are
// none of a part's (exit code 1): see seal.h. Its hem file is its attempt's own.
class PartStore final : public OutputStore {
 public:
  // Goes on with the files of the job, which create_outputs() has made, and with the hems of an earlier attempt, of
  // which the ledger finds out what they are worth. Exit code 6 where a file of the job is not there. The plan outlives
  // the store.
  static Result<std::unique_ptr<PartStore>> open(const Plan& plan, const ClusterJob& job, std::size_t part,
                                                 const std::string& attempt);
  // For reading alone, of a part that is done: its hem file is the one that has the part's own name.
  static Result<std::unique_ptr<PartStore>> view(const Plan& plan, const ClusterJob& job, std::size_t part);
  ~PartStore() override;

  Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) override;
  void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                   Completion done) override;
  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const override;
  Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) override;
  Status publish() override;
  void keep() override {}
  // Everything is on the disk.
  Status leave() override;

  // After leave(): the hem file gets the part's own name.
  Status publish_hem();
  // Of the output files that the part writes to, in their order.
  std::vector<std::uint64_t> inodes() const;
  // When the part is done: those of other attempts are removed.
  void remove_other_hems() const;

 private:
  class File;
  PartStore(const Plan& plan, const ClusterJob& job, std::size_t part, const std::string& attempt);
  Status open_hem();
  template <class F>
  void for_pieces(std::size_t file, std::uint64_t offset, std::size_t bytes, const F& f) const;

  const ClusterJob job_;
  const std::size_t part_;
  const std::string attempt_;
  PartPlaces places_;
  std::vector<std::unique_ptr<File>> files_;  // null: none of the part's
  std::unique_ptr<File> hem_;                 // null: the part has none
};

// Those output files of a job that are missing or of another size, and the claims beside them (output_claim.h): of full
// size, reserved where the file system can do that. Others stay as they are.
Status create_outputs(const ClusterJob& job, const Plan& plan);
// Removes them and their claims, where they are there.
Status remove_outputs(const ClusterJob& job, const Plan& plan);

// Names of files in the job's folder of parts that begin with `beginning`, sorted.
std::vector<std::string> part_files(const ClusterJob& job, const std::string& beginning);

}  // namespace ggufmill
