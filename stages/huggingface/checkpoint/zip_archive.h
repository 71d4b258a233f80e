#pragma once
// Reads the directory of a zip archive with uncompressed files, as torch.save writes it.
// Source: PKWARE, APPNOTE.TXT, 6.3.10.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill::huggingface {

struct ZipPlace {
  std::uint64_t offset = 0;  // of the file's data in the archive
  std::uint64_t bytes = 0;
};

class ZipArchive {
 public:
  // Reads the central directory. Exit code 4 if the file is not a zip archive, spans several disks, or has more than
  // 2^20 files or two files of the same name, or if its files overlap each other or the directory.
  static Result<ZipArchive> open(std::shared_ptr<const ByteSource> file);

  // Folder of the first file, which is the archive's own name; empty if there is none.
  const std::string& folder() const { return folder_; }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // Locates the data of a file. Exit code 4 if the file does not exist, is compressed or encrypted, or has a header
  // that contradicts the directory.
  Result<ZipPlace> find(std::string_view name) const;
  // Reads a file and compares its data with its CRC-32. Exit code 4 if they differ, and as for find(). A CRC-32 of 0 is
  // not compared: PyTorch writes it if it is set not to compute any (set_crc32_options).
  Status check(std::string_view name) const;

 private:
  struct Entry {
    std::uint16_t flags = 0, method = 0;
    std::uint32_t checksum = 0;
    std::uint64_t stored_bytes = 0, bytes = 0;
    std::uint64_t header = 0;  // start of the file's own header
    std::uint64_t end = 0;     // start of the next header or of the directory
  };
  class DirectoryReader;

  std::shared_ptr<const ByteSource> file_;
  std::string folder_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace ggufmill::huggingface
