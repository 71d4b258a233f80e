#pragma once
// The parts in which files are uploaded, and the order in which a run fills them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/io/output_store.h"

namespace ggufmill::remote {

// Limits of S3. Source: Amazon S3 User Guide, "Multipart upload limits".
inline constexpr std::uint64_t kMaxObjectBytes = std::uint64_t{5} << 40;
inline constexpr std::uint64_t kMaxParts = 10'000;
inline constexpr std::uint64_t kMinPartBytes = 8 << 20;  // S3 allows 5 MiB

// Returns the size of all parts of a file but the last, which depends on nothing but the file's size.
std::uint64_t part_bytes(std::uint64_t file_bytes);

// A part of a file.
struct PartSpan {
  std::size_t file = 0;
  unsigned number = 0;  // from 1
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t data = 0;             // bytes that the run writes: the others are header and padding
  std::uint64_t first = 0, last = 0;  // rows of the run (PlannedWrite::row) at which they begin and end

  bool operator==(const PartSpan&) const = default;
};

// The parts of all files.
class PartMap {
 public:
  // If `writes` is empty, the files are written one after another, each from its header to its end.
  PartMap(std::span<const StoredFile> files, std::span<const PlannedWrite> writes);

  // In the order in which the run begins to write them; parts without data come last.
  const std::vector<PartSpan>& parts() const { return parts_; }
  // Index in parts() of the part of a file that has this byte.
  std::size_t find(std::size_t file, std::uint64_t offset) const;
  // Indices in parts() of the parts of a file, in order.
  std::span<const std::size_t> of_file(std::size_t file) const { return by_file_[file]; }
  // The most bytes of parts that are begun but not yet complete at a time, if the run writes in the planned order.
  std::uint64_t most_open() const { return most_open_; }
  std::uint64_t largest() const { return largest_; }

 private:
  void add_write(const PlannedWrite& write);
  void find_most_open();

  std::vector<std::uint64_t> sizes_;  // of the parts of each file
  std::vector<PartSpan> parts_;
  std::vector<std::vector<std::size_t>> by_file_;
  std::uint64_t most_open_ = 0, largest_ = 0;
};

}  // namespace ggufmill::remote
