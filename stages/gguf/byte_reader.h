#pragma once
// Reads the header of a GGUF file sequentially, through a small buffer, in the file's encoding.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/io.h"

namespace ggufmill::gguf {

// Encoding of numbers in a file.
struct Encoding {
  std::uint32_t version = 3;
  bool big_endian = false;
  // Returns the size in bytes of a length, count or dimension.
  std::size_t length_bytes() const { return version == 1 ? 4 : 8; }
};

// Checks every read against the rest of the file before allocating anything. Errors name the file, the byte offset and
// the part of the file (exit code 4). Not thread-safe. `file` must outlive the reader.
class ByteReader {
 public:
  explicit ByteReader(const ByteSource& file);

  std::uint64_t position() const { return start_ + at_; }
  std::uint64_t remaining() const { return file_.bytes() - position(); }
  const Encoding& encoding() const { return encoding_; }
  void set_encoding(Encoding encoding) { encoding_ = encoding; }

  // Fills all of `into` with the next bytes of the file, unchanged.
  Status read(std::span<char> into);
  Result<std::uint32_t> u32();
  Result<std::uint64_t> u64();
  Result<std::uint64_t> length();  // reads a length, count or dimension of 32 or 64 bits
  // Reads a key or tensor name: a length and that many bytes. Fails if the name is longer than kMaxNameLength, contains
  // zero bytes or is not UTF-8. `what` ("key") is for the error message.
  Result<std::string> name(std::string_view what);

  // Sets the part that errors of subsequent reads name: "in PART 'NAME'". `part` must be a literal.
  void enter(std::string_view part, std::string_view name = {});
  Error error(std::uint64_t offset, std::string what, std::string help = {}) const;
  // Returns the error for a file that ends although `bytes` more are needed.
  Error cut_short(std::uint64_t bytes) const;

 private:
  Status fill();

  const ByteSource& file_;
  Encoding encoding_;
  std::vector<char> buffer_;
  std::uint64_t start_ = 0;  // file offset of the buffer's first byte
  std::size_t at_ = 0;       // offset in the buffer of the next byte
  std::size_t filled_ = 0;
  std::string_view part_;
  std::string name_;
};

// Returns the problem with a key or tensor name; empty if it is valid.
std::string name_problem(std::string_view name);

}  // namespace ggufmill::gguf
