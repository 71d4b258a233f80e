#pragma once
// A file that any thread can write at given offsets. Throws std::system_error.

#include <cstdint>
#include <span>
#include <string>

#include "pipeline/io/platform/files.h"

namespace ggufmill::synth {

class OutputFile {
 public:
  // Creates the file, or truncates an existing one.
  explicit OutputFile(const std::string& path);
  // Sets the size; unwritten bytes read as zeros.
  void resize(std::uint64_t size);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

 private:
  [[noreturn]] void fail(const char* action) const;
  std::string path_;
  Descriptor file_;
};

}  // namespace ggufmill::synth
