#pragma once
// The directory of a zip archive whose files are stored as they are: what torch.save writes.
// Source: PKWARE, APPNOTE.TXT, 6.3.10.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill::huggingface {

struct ZipPlace {
  std::uint64_t offset = 0;  // of its data in the archive
  std::uint64_t bytes = 0;
};

class ZipArchive {
 public:
  // Reads the central directory. Exit code 4 for what is no zip archive, spans several disks, has more than 2^20 files
  // or two of one name, or whose files overlap each other or the directory.
  static Result<ZipArchive> open(std::shared_ptr<const ByteSource> file);

  // The folder that the first file is in, which is the archive's own name; empty: none.
  const std::string& folder() const { return folder_; }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // Where the data of a file is. Exit code 4 where there is no such file, it is compressed or encrypted, or its own
  // header contradicts the directory.
  Result<ZipPlace> find(std::string_view name) const;

 private:
  struct Entry {
    std::uint16_t flags = 0, method = 0;
    std::uint64_t stored_bytes = 0, bytes = 0;
    std::uint64_t header = 0;  // where its own header begins
    std::uint64_t end = 0;     // where the next header, or the directory, begins
  };
  class DirectoryReader;

  std::shared_ptr<const ByteSource> file_;
  std::string folder_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace ggufmill::huggingface
