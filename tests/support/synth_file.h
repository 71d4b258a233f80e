#pragma once
// A file that is written at given positions, from any thread. Throws std::system_error.

#include <cstdint>
#include <span>
#include <string>

namespace ggufmill::synth {

class OutputFile {
 public:
  // Creates the file, or empties the one that is there.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // What was not written reads as zeros.
  void resize(std::uint64_t size);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

 private:
  [[noreturn]] void fail(const char* action) const;
  std::string path_;
  int file_;
};

}  // namespace ggufmill::synth
