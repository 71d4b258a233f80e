#include "stages/gguf/byte_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"
#include "stages/gguf/format.h"

namespace ggufmill::gguf {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;

template <class T>
Result<T> read_number(ByteReader& in) {
  char bytes[sizeof(T)];
  BOOST_OUTCOME_TRY(in.read(bytes));
  if (in.encoding().big_endian) std::reverse(std::begin(bytes), std::end(bytes));
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

ByteReader::ByteReader(const ByteSource& file)
    : file_(file), buffer_(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, file.bytes()))) {}

Status ByteReader::fill() {
  start_ += at_;
  at_ = filled_ = 0;
  const std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), remaining()));
  BOOST_OUTCOME_TRY(file_.read(start_, std::as_writable_bytes(std::span(buffer_).first(bytes))));
  filled_ = bytes;
  return ok();
}

Status ByteReader::read(std::span<char> into) {
  if (into.size() > remaining()) return cut_short(into.size());
  while (!into.empty()) {
    if (at_ == filled_ && into.size() >= buffer_.size()) {  // large reads bypass the buffer
      BOOST_OUTCOME_TRY(file_.read(position(), std::as_writable_bytes(into)));
      start_ += into.size();
      return ok();
    }
    if (at_ == filled_) {
      BOOST_OUTCOME_TRY(fill());
    }
    const std::size_t bytes = std::min(into.size(), filled_ - at_);
    std::memcpy(into.data(), &buffer_[at_], bytes);
    at_ += bytes;
    into = into.subspan(bytes);
  }
  return ok();
}

Result<std::uint32_t> ByteReader::u32() { return read_number<std::uint32_t>(*this); }

Result<std::uint64_t> ByteReader::u64() { return read_number<std::uint64_t>(*this); }

Result<std::uint64_t> ByteReader::length() {
  if (encoding_.length_bytes() == 8) return u64();
  BOOST_OUTCOME_TRY(const std::uint32_t value, u32());
  return value;
}

Result<std::string> ByteReader::name(std::string_view what) {
  const std::uint64_t at = position();
  BOOST_OUTCOME_TRY(const std::uint64_t bytes, length());
  if (bytes > remaining()) return cut_short(bytes);
  if (bytes > kMaxNameLength)
    return error(at, fmt::format("a {} of {} bytes is longer than the limit of {}", what, bytes, kMaxNameLength));
  std::string text(static_cast<std::size_t>(bytes), '\0');
  BOOST_OUTCOME_TRY(read(text));
  if (const std::string problem = name_problem(text); !problem.empty())
    return error(at, fmt::format("{} {} {}", what, quoted_name(text), problem));
  return text;
}

void ByteReader::enter(std::string_view part, std::string_view name) {
  part_ = part;
  name_ = name;
}

Error ByteReader::error(std::uint64_t offset, std::string what, std::string help) const {
  Error error = input_error(file_.path(), std::move(what), std::move(help));
  error.detail = fmt::format("at byte {:#x}, in {}", offset, part_);
  if (!name_.empty()) error.detail += " " + quoted_name(name_);
  return error;
}

Error ByteReader::cut_short(std::uint64_t bytes) const {
  return error(
      position(),
      fmt::format("the file ends too early: {} more bytes are needed, but only {} are left", bytes, remaining()),
      kDamagedFileHelp);
}

std::string name_problem(std::string_view name) {
  if (name.find('\0') != std::string_view::npos) return "contains a zero byte";
  return is_utf8(name) ? "" : "is not UTF-8";
}

}  // namespace ggufmill::gguf
