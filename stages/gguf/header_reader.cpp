#include "stages/gguf/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"
#include "pipeline/core/type_family.h"
#include "pipeline/core/wings.h"
#include "stages/gguf/format.h"

namespace ggufmill::gguf {
namespace {

// ---- metadata, converted to its canonical encoding ----

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Reads the value that follows a type tag.
class ValueReader {
 public:
  explicit ValueReader(ByteReader& in) : in_(in) {}

  Result<MetadataValue> read(MetadataType type) {
    limit_ = kLargestValue + (type == MetadataType::kString ? 8 : 12);  // plus the length, or the type and count
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
    BOOST_OUTCOME_TRY(append_bytes(count * width));  // check_count() prevents overflow
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

  // Fails if `count` elements of minimal size do not fit in the rest of the file.
  Status check_count(MetadataType type, std::uint32_t tag, std::uint64_t count, std::uint64_t offset) const {
    if (metadata_type_name(type).empty()) return in_.error(offset, fmt::format("unknown array element type {}", tag));
    std::uint64_t least = metadata_type_bytes(type);
    if (type == MetadataType::kString) least = in_.encoding().length_bytes();
    if (type == MetadataType::kArray) least = 4 + in_.encoding().length_bytes();
    if (count <= in_.remaining() / least) return ok();
    return in_.error(offset, fmt::format("an array of {} {} elements does not fit in the remaining {} bytes", count,
                                         metadata_type_name(type), in_.remaining()));
  }

  Error too_large() const {
    return in_.error(in_.position(), fmt::format("a value is larger than the limit of {} bytes", kLargestValue));
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

// Reads `count` entries in order. Values are kept byte for byte, except for the lengths of version 1 and the byte
// order. Fails with exit code 4 for empty, duplicate and malformed keys, unknown types, arrays nested deeper than
// kDeepestArray, values and metadata larger than kLargestValue and kLargestMetadata, bools other than 0 and 1 (invalid
// in the format), and an alignment that is not a uint32 or not a power of two up to kLargestAlignment.
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
      return in.error(offset, fmt::format("the metadata is larger than the limit of {} bytes", kLargestMetadata));
    if (metadata.find(key)) return in.error(offset, fmt::format("metadata key {} appears twice", quoted_name(key)));
    metadata.add(std::move(key), std::move(value));
  }
  return metadata;
}

// ---- descriptions of tensors ----

constexpr std::uint64_t kMaxElements = std::numeric_limits<std::int64_t>::max();

// Types removed from the format. Source: ggml, include/ggml.h.
struct RemovedType {
  TypeId id;
  std::string_view name;
};
constexpr RemovedType kRemovedTypes[] = {{4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
                                         {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};

Error wrong(const ByteReader& in, std::uint64_t offset, std::string_view name, std::string_view what,
            std::string help = {}) {
  return in.error(offset, fmt::format("tensor {} {}", quoted_name(name), what), std::move(help));
}

Result<Shape> read_shape(ByteReader& in, std::string_view name) {
  const std::uint64_t offset = in.position();
  Shape shape;
  BOOST_OUTCOME_TRY(shape.rank, in.u32());
  if (shape.rank > kMaxDimensions)
    return wrong(in, offset, name,
                 fmt::format("has {} dimensions, more than the limit of {}", shape.rank, kMaxDimensions));
  std::uint64_t elements = 1;
  bool fits = true;
  for (std::uint32_t i = 0; i < shape.rank; ++i) {
    BOOST_OUTCOME_TRY(shape.dims[i], in.length());
    fits = fits && !__builtin_mul_overflow(elements, std::max<std::uint64_t>(1, shape.dims[i]), &elements) &&
           elements <= kMaxElements;
  }
  if (!fits)
    return wrong(in, offset, name, fmt::format("has the shape {}: more than 2^63 - 1 elements", describe(shape)));
  shape.rank = std::max<std::uint32_t>(1, shape.rank);
  return shape;
}

Error unknown_type(const ByteReader& in, std::uint64_t offset, std::string_view name, TypeId id) {
  for (const RemovedType& removed : kRemovedTypes)
    if (removed.id == id)
      return wrong(in, offset, name,
                   fmt::format("is of type {} ({}), which was removed from the format", id, removed.name),
                   "recreate the file with a current type");
  if (const auto member = family_member(id)) {
    const std::string is = fmt::format("is of the type {} ({}) of {}", member->name, id, member->family->project);
    return member->why.empty() ? wrong(in, offset, name, is, type_help(*member->family))
                               : wrong(in, offset, name, is + ", which is not supported", std::string(member->why));
  }
  const std::string omitted = omitted_wing_help(std::to_string(id));
  return wrong(in, offset, name, fmt::format("is of unknown type {}", id),
               !omitted.empty() ? omitted
                                : "`ggufmill types` lists the known ones; if a kernel module adds this one, give the "
                                  "module's folder: --kernel-dir");
}

Result<const TypeInfo*> read_type(ByteReader& in, std::string_view name, const Types& types) {
  const std::uint64_t offset = in.position();
  BOOST_OUTCOME_TRY(const TypeId id, in.u32());
  const TypeInfo* type = types.find(id);
  if (!type) return unknown_type(in, offset, name, id);
  if (in.encoding().big_endian && !can_swap(*type))
    return wrong(in, offset, name, fmt::format("is big-endian, and byte swapping of {} is not supported", type->name));
  return type;
}

Result<std::uint64_t> source_bytes(const ByteReader& in, const DescribedTensor& tensor) {
  const TypeInfo& type = *tensor.type;
  if (tensor.shape.columns() % type.block_elements != 0)
    return wrong(in, tensor.described_at, tensor.name,
                 fmt::format("has rows of {} elements, not a multiple of the block size {} of {}",
                             tensor.shape.columns(), type.block_elements, type.name));
  if (tensor.shape.dims[1] % type.group_rows != 0)
    return wrong(in, tensor.described_at, tensor.name,
                 fmt::format("has {} rows, not a multiple of the {} that {} interleaves", tensor.shape.dims[1],
                             type.group_rows, type.name));
  Result<std::uint64_t> bytes = bytes_of(type, tensor.shape);
  if (!bytes) return wrong(in, tensor.described_at, tensor.name, "is too large: " + bytes.error().what);
  return bytes;
}

Result<DescribedTensor> read_tensor(ByteReader& in, const Types& types) {
  DescribedTensor tensor;
  tensor.described_at = in.position();
  BOOST_OUTCOME_TRY(tensor.name, in.name("tensor name"));
  BOOST_OUTCOME_TRY(tensor.shape, read_shape(in, tensor.name));
  BOOST_OUTCOME_TRY(tensor.type, read_type(in, tensor.name, types));
  BOOST_OUTCOME_TRY(tensor.data.bytes, source_bytes(in, tensor));
  BOOST_OUTCOME_TRY(tensor.data.offset, in.u64());
  tensor.data.big_endian = in.encoding().big_endian;
  return tensor;
}

Status place(const ByteReader& in, std::uint64_t data, std::uint64_t alignment, DescribedTensor& tensor) {
  const std::uint64_t offset = tensor.data.offset, file = in.position() + in.remaining();
  if (offset % alignment != 0)
    return wrong(in, tensor.described_at, tensor.name,
                 fmt::format("is at offset {}, not a multiple of the alignment {}", offset, alignment));
  if (data > file || offset > file - data || tensor.data.bytes > file - data - offset)
    return wrong(
        in, tensor.described_at, tensor.name,
        fmt::format("has {} bytes at offset {} of the data, past the end of the file", tensor.data.bytes, offset),
        kDamagedFileHelp);
  tensor.data.offset += data;
  return ok();
}

// Returns the tensors in the order of their data; omits those without data.
std::vector<const DescribedTensor*> by_place(const std::vector<DescribedTensor>& tensors) {
  std::vector<const DescribedTensor*> order;
  order.reserve(tensors.size());
  for (const DescribedTensor& described : tensors)
    if (described.data.bytes != 0) order.push_back(&described);
  std::stable_sort(order.begin(), order.end(),
                   [](const DescribedTensor* a, const DescribedTensor* b) { return a->data.offset < b->data.offset; });
  return order;
}

// Reads `count` tensor descriptions in order. Offsets are as stored in the file: relative to the start of the data.
// Fails with exit code 4 for more than four dimensions, 2^63 or more elements (counting dimensions of 0 as 1), unknown
// types, rows that are not a multiple of the block size, and external types in big-endian files. Does not check for
// duplicate names.
Result<std::vector<DescribedTensor>> read_tensors(ByteReader& in, std::uint64_t count, const Types& types) {
  std::vector<DescribedTensor> tensors;
  in.enter("the list of tensors");
  for (std::uint64_t i = 0; i < count; ++i) {
    BOOST_OUTCOME_TRY(DescribedTensor described, read_tensor(in, types));
    tensors.push_back(std::move(described));
  }
  return tensors;
}

// Makes offsets absolute. Fails if a tensor is unaligned, extends past the end or overlaps another one. Gaps and any
// order are accepted. `in` must be positioned after the last description.
Status place_tensors(const ByteReader& in, std::uint64_t alignment, std::vector<DescribedTensor>& tensors) {
  const std::optional<std::uint64_t> data = padded(in.position(), alignment);
  if (!data) return in.error(in.position(), "the header goes past the largest possible file size");
  for (DescribedTensor& described : tensors) {
    BOOST_OUTCOME_TRY(place(in, *data, alignment, described));
  }
  const std::vector<const DescribedTensor*> order = by_place(tensors);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Extent& before = order[i - 1]->data;
    if (before.offset + before.bytes > order[i]->data.offset)
      return wrong(in, order[i]->described_at, order[i]->name, "overlaps tensor " + quoted_name(order[i - 1]->name));
  }
  return ok();
}

// ---- complete header ----

// Returns true for the text file that replaces a large file in Git LFS. `in` is positioned after the first four bytes.
bool is_lfs_pointer(std::string_view magic, ByteReader& in) {
  constexpr std::string_view kRest = "ion https://git-lfs";
  std::string rest(kRest.size(), '\0');
  return magic == "vers" && in.remaining() >= rest.size() && in.read(rest) && rest == kRest;
}

// Returns true for the beginning of a safetensors file: the length of a JSON object, and its first byte. `in` is
// positioned after the first four bytes.
bool is_safetensors(ByteReader& in) {
  std::string rest(5, '\0');
  return in.remaining() >= rest.size() && in.read(rest) && rest == std::string("\0\0\0\0{", 5);
}

Status check_magic(ByteReader& in) {
  char magic[4];
  if (in.remaining() < sizeof magic)
    return in.error(0, fmt::format("not a GGUF file: it has {} bytes", in.remaining()));
  BOOST_OUTCOME_TRY(in.read(magic));
  const std::string_view found(magic, sizeof magic);
  if (found == kMagic) return ok();
  std::string help;
  if (found == "vers" && is_lfs_pointer(found, in))
    help = "this is a Git LFS pointer: `git lfs pull` downloads the actual file";
  else if (is_safetensors(in))
    help = "this is a safetensors file: `ggufmill convert FOLDER` converts the checkpoint that it belongs to";
  return in.error(0, fmt::format("not a GGUF file: it begins with {}, not 'GGUF'", quoted_name(found)),
                  std::move(help));
}

// Reads the version. If its low half is zero, the file has the other byte order.
Result<Encoding> read_encoding(ByteReader& in) {
  const std::uint64_t offset = in.position();
  BOOST_OUTCOME_TRY(std::uint32_t version, in.u32());
  const bool big_endian = version != 0 && (version & 0xffff) == 0;
  if (big_endian) version = __builtin_bswap32(version);
  if (version >= 1 && version <= kNewestVersion) return Encoding{version, big_endian};
  return in.error(offset,
                  fmt::format("GGUF version {} is not supported (supported: 1 to {})", version, kNewestVersion));
}

struct Counts {
  std::uint64_t tensors = 0;
  std::uint64_t entries = 0;
};

// Reads the counts. Rejects impossible ones before anything is allocated, assuming the minimal size of each item.
Result<Counts> read_counts(ByteReader& in) {
  const std::uint64_t offset = in.position(), length = in.encoding().length_bytes();
  const std::uint64_t least_entry = length + 1 + 4 + 1;       // length, key, type, value
  const std::uint64_t least_tensor = length + 0 + 4 + 4 + 8;  // length, name, rank, type, offset
  Counts counts;
  BOOST_OUTCOME_TRY(counts.tensors, in.length());
  BOOST_OUTCOME_TRY(counts.entries, in.length());
  if (counts.tensors > in.remaining() / least_tensor)
    return in.error(offset,
                    fmt::format("{} not fit in the remaining {}",
                                counts.tensors == 1 ? "1 tensor does" : counted(counts.tensors, "tensor") + " do",
                                counted(in.remaining(), "byte")));
  if (counts.entries > (in.remaining() - counts.tensors * least_tensor) / least_entry)
    return in.error(offset + length, fmt::format("{} metadata entr{} and {} do not fit in the remaining {}",
                                                 counts.entries, counts.entries == 1 ? "y" : "ies",
                                                 counted(counts.tensors, "tensor"), counted(in.remaining(), "byte")));
  return counts;
}

// Returns the alignment, which was checked when it was read.
std::uint64_t alignment_of(const Metadata& metadata) {
  const MetadataValue* value = metadata.find(kAlignmentKey);
  return value ? *as_unsigned(*value) : kDefaultAlignment;
}

Status check_names(const ByteReader& in, const std::vector<DescribedTensor>& tensors) {
  std::unordered_set<std::string_view> names;
  for (const DescribedTensor& described : tensors)
    if (!names.insert(described.name).second)
      return in.error(described.described_at, fmt::format("tensor {} appears twice", quoted_name(described.name)));
  return ok();
}

}  // namespace

namespace {

// Reads everything before the list of tensors into `header`. Returns the number of tensors.
Result<std::uint64_t> begin_header(ByteReader& in, Header& header) {
  in.enter("the header");
  BOOST_OUTCOME_TRY(check_magic(in));
  BOOST_OUTCOME_TRY(header.encoding, read_encoding(in));
  in.set_encoding(header.encoding);
  BOOST_OUTCOME_TRY(const Counts counts, read_counts(in));
  BOOST_OUTCOME_TRY(header.metadata, read_metadata(in, counts.entries));
  return counts.tensors;
}

}  // namespace

Result<Metadata> read_metadata(const ByteSource& file) {
  ByteReader in(file);
  Header header;
  BOOST_OUTCOME_TRY(begin_header(in, header));
  return std::move(header.metadata);
}

Result<Header> read_header(const ByteSource& file, const Types& types) {
  ByteReader in(file);
  Header header;
  BOOST_OUTCOME_TRY(const std::uint64_t tensors, begin_header(in, header));
  header.alignment = alignment_of(header.metadata);
  BOOST_OUTCOME_TRY(header.tensors, read_tensors(in, tensors, types));
  BOOST_OUTCOME_TRY(check_names(in, header.tensors));
  BOOST_OUTCOME_TRY(place_tensors(in, header.alignment, header.tensors));
  return header;
}

}  // namespace ggufmill::gguf
