#include "stages/gguf/metadata_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"
#include "stages/gguf/format.h"

namespace ggufmill::gguf {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Reads one value after its type tag.
class ValueReader {
 public:
  explicit ValueReader(ByteReader& in) : in_(in) {}

  Result<MetadataValue> read(MetadataType type) {
    limit_ = kLargestValue + (type == MetadataType::kString ? 8 : 12);  // without the length, or type and count
    BOOST_OUTCOME_TRY(append(type, 0));
    out_.shrink_to_fit();
    return MetadataValue{type, std::move(out_)};
  }

 private:
  Status append(MetadataType type, int depth) {
    if (type == MetadataType::kString) return append_string();
    if (type == MetadataType::kArray) return append_array(depth + 1);
    return append_numbers(type, 1);
  }

  Status append_bytes(std::uint64_t bytes) {
    if (bytes > in_.remaining()) return in_.cut_short(bytes);
    if (bytes > limit_ - std::min<std::uint64_t>(out_.size(), limit_)) return too_large();
    const std::size_t at = out_.size();
    out_.resize(at + static_cast<std::size_t>(bytes));
    return in_.read(std::span(out_).subspan(at));
  }

  Status append_numbers(MetadataType type, std::uint64_t count) {
    const std::size_t width = metadata_type_bytes(type), at = out_.size();
    const std::uint64_t offset = in_.position();
    BOOST_OUTCOME_TRY(append_bytes(count * width));  // no overflow: check_count()
    const std::span<char> added = std::span(out_).subspan(at);
    if (in_.encoding().big_endian) swap_words(width, std::as_writable_bytes(added));
    if (type != MetadataType::kBool) return ok();
    const auto bad = std::find_if(added.begin(), added.end(), [](char c) { return c != 0 && c != 1; });
    if (bad == added.end()) return ok();
    return in_.error(offset + static_cast<std::uint64_t>(bad - added.begin()),
                     fmt::format("a bool is {}; only 0 and 1 are valid", static_cast<unsigned char>(*bad)));
  }

  Status append_string() {
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, in_.length());
    append_number(out_, bytes);
    return append_bytes(bytes);
  }

  Status append_array(int depth) {
    const std::uint64_t offset = in_.position();
    if (depth > kDeepestArray) return in_.error(offset, fmt::format("arrays are nested deeper than {}", kDeepestArray));
    BOOST_OUTCOME_TRY(const std::uint32_t tag, in_.u32());
    BOOST_OUTCOME_TRY(const std::uint64_t count, in_.length());
    const auto type = static_cast<MetadataType>(tag);
    BOOST_OUTCOME_TRY(check_count(type, tag, count, offset));
    append_number(out_, tag);
    append_number(out_, count);
    if (metadata_type_bytes(type) != 0) return append_numbers(type, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      BOOST_OUTCOME_TRY(append(type, depth));
      if (out_.size() > limit_) return too_large();
    }
    return ok();
  }

  // Whether `count` elements can be there at all, each of its least size.
  Status check_count(MetadataType type, std::uint32_t tag, std::uint64_t count, std::uint64_t offset) const {
    if (metadata_type_name(type).empty()) return in_.error(offset, fmt::format("unknown array element type {}", tag));
    std::uint64_t least = metadata_type_bytes(type);
    if (type == MetadataType::kString) least = in_.encoding().length_bytes();
    if (type == MetadataType::kArray) least = 4 + in_.encoding().length_bytes();
    if (count <= in_.remaining() / least) return ok();
    return in_.error(offset, fmt::format("an array of {} {} elements does not fit in the {} bytes left", count,
                                         metadata_type_name(type), in_.remaining()));
  }

  Error too_large() const {
    return in_.error(in_.position(),
                     fmt::format("a value is larger than {} bytes, the most that is read", kLargestValue));
  }

  ByteReader& in_;
  std::uint64_t limit_ = 0;
  std::string out_;
};

Result<MetadataValue> read_value(ByteReader& in) {
  const std::uint64_t offset = in.position();
  BOOST_OUTCOME_TRY(const std::uint32_t tag, in.u32());
  const auto type = static_cast<MetadataType>(tag);
  if (metadata_type_name(type).empty()) return in.error(offset, fmt::format("unknown metadata type {}", tag));
  return ValueReader(in).read(type);
}

Status check_alignment(const ByteReader& in, std::uint64_t offset, const MetadataValue& value) {
  if (value.type != MetadataType::kUint32)
    return in.error(offset, fmt::format("the alignment is of type {}, not uint32", metadata_type_name(value.type)));
  const std::uint64_t alignment = *as_unsigned(value);
  if (is_valid_alignment(alignment)) return ok();
  return in.error(offset, fmt::format("the alignment {} is not a power of two up to {}", alignment, kLargestAlignment));
}

}  // namespace

Result<Metadata> read_metadata(ByteReader& in, std::uint64_t count) {
  Metadata metadata;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    in.enter("the metadata");
    const std::uint64_t offset = in.position();
    BOOST_OUTCOME_TRY(std::string key, in.name("key"));
    if (key.empty()) return in.error(offset, fmt::format("metadata entry {} has an empty key", i + 1));
    in.enter("the value of", key);
    BOOST_OUTCOME_TRY(MetadataValue value, read_value(in));
    if (key == kAlignmentKey) {
      BOOST_OUTCOME_TRY(check_alignment(in, offset, value));
    }
    bytes += value.bytes.size();
    if (bytes > kLargestMetadata)
      return in.error(offset,
                      fmt::format("the metadata is larger than {} bytes, the most that is read", kLargestMetadata));
    if (metadata.find(key)) return in.error(offset, fmt::format("metadata key {} occurs twice", quoted_name(key)));
    metadata.add(std::move(key), std::move(value));
  }
  return metadata;
}

}  // namespace ggufmill::gguf
