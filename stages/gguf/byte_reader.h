#pragma once
// Reads the header of a GGUF file from front to back, through a small buffer, in the file's encoding.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/io.h"

namespace ggufmill::gguf {

// How a file writes numbers.
struct Encoding {
  std::uint32_t version = 3;
  bool big_endian = false;
  // Bytes of a length, a count or a dimension.
  std::size_t length_bytes() const { return version == 1 ? 4 : 8; }
};

// Every read is checked against what is left of the file before anything is allocated. Errors name the file, the byte
// offset and the part of the file (exit code 4). Not thread-safe; `file` outlives the reader.
class ByteReader {
 public:
  explicit ByteReader(const ByteSource& file);

  std::uint64_t position() const { return start_ + at_; }
  std::uint64_t remaining() const { return file_.bytes() - position(); }
  const Encoding& encoding() const { return encoding_; }
  void set_encoding(Encoding encoding) { encoding_ = encoding; }

  // Bytes as they are in the file; fills all of `into`.
  Status read(std::span<char> into);
  Result<std::uint32_t> u32();
  Result<std::uint64_t> u64();
  Result<std::uint64_t> length();  // a length, count or dimension: 32 or 64 bits
  // A length and as many bytes: a key or a tensor name. Refused when longer than kLongestName, with zero bytes in it,
  // or no UTF-8; `what` ("key") is for the message.
  Result<std::string> name(std::string_view what);

  // What the messages of the following reads say: "in PART 'NAME'". `part` is a literal.
  void enter(std::string_view part, std::string_view name = {});
  Error error(std::uint64_t offset, std::string what, std::string help = {}) const;
  // `bytes` more are needed than are left.
  Error cut_short(std::uint64_t bytes) const;

 private:
  Status fill();

  const ByteSource& file_;
  Encoding encoding_;
  std::vector<char> buffer_;
  std::uint64_t start_ = 0;  // offset in the file of the buffer's first byte
  std::size_t at_ = 0;       // next byte in the buffer
  std::size_t filled_ = 0;
  std::string_view part_;
  std::string name_;
};

// What is wrong with a key or tensor name, or an empty string.
std::string name_problem(std::string_view name);

}  // namespace ggufmill::gguf
