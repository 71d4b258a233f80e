#pragma once
// Space for the bytes of a part until it is uploaded: in memory, or in a file of the spool folder.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/memory.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill::remote {

// The bytes of one part, which begin as zeros. Reads and writes are thread-safe for disjoint ranges.
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

}  // namespace ggufmill::remote
