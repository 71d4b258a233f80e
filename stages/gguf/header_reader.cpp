#include "stages/gguf/header_reader.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

#include "pipeline/core/text.h"
#include "stages/gguf/format.h"
#include "stages/gguf/metadata_reader.h"

namespace ggufmill::gguf {
namespace {

// The text file that Git keeps in a large one's place. `in` stands behind its first four bytes.
bool is_lfs_pointer(std::string_view magic, ByteReader& in) {
  constexpr std::string_view kRest = "ion https://git-lfs";
  std::string rest(kRest.size(), '\0');
  return magic == "vers" && in.remaining() >= rest.size() && in.read(rest) && rest == kRest;
}

Status check_magic(ByteReader& in) {
  char magic[4];
  if (in.remaining() < sizeof magic)
    return in.error(0, fmt::format("not a GGUF file: it has {} bytes", in.remaining()));
  BOOST_OUTCOME_TRY(in.read(magic));
  const std::string_view found(magic, sizeof magic);
  if (found == kMagic) return ok();
  return in.error(0, fmt::format("not a GGUF file: it begins with {}, not 'GGUF'", quoted_name(found)),
                  is_lfs_pointer(found, in) ? "it is a Git LFS pointer: `git lfs pull` gets the file itself" : "");
}

// A version whose low half is zero is one in the other byte order.
Result<Encoding> read_encoding(ByteReader& in) {
  const std::uint64_t offset = in.position();
  BOOST_OUTCOME_TRY(std::uint32_t version, in.u32());
  const bool big_endian = version != 0 && (version & 0xffff) == 0;
  if (big_endian) version = __builtin_bswap32(version);
  if (version >= 1 && version <= kNewestVersion) return Encoding{version, big_endian};
  return in.error(offset, fmt::format("GGUF version {} is not known; 1 to {} are read", version, kNewestVersion));
}

struct Counts {
  std::uint64_t tensors = 0;
  std::uint64_t entries = 0;
};

// Counts that cannot be true, each item having its least size, are refused before anything is made of them.
Result<Counts> read_counts(ByteReader& in) {
  const std::uint64_t offset = in.position(), length = in.encoding().length_bytes();
  const std::uint64_t least_entry = length + 1 + 4 + 1;       // length, key, type, value
  const std::uint64_t least_tensor = length + 0 + 4 + 4 + 8;  // length, name, rank, type, offset
  Counts counts;
  BOOST_OUTCOME_TRY(counts.tensors, in.length());
  BOOST_OUTCOME_TRY(counts.entries, in.length());
  if (counts.tensors > in.remaining() / least_tensor)
    return in.error(offset, fmt::format("{} tensors do not fit in the {} bytes left", counts.tensors, in.remaining()));
  if (counts.entries > (in.remaining() - counts.tensors * least_tensor) / least_entry)
    return in.error(offset + length, fmt::format("{} metadata entries and {} tensors do not fit in the {} bytes left",
                                                 counts.entries, counts.tensors, in.remaining()));
  return counts;
}

// Checked when it was read.
std::uint64_t alignment_of(const Metadata& metadata) {
  const MetadataValue* value = metadata.find(kAlignmentKey);
  return value ? *as_unsigned(*value) : kDefaultAlignment;
}

Status check_names(const ByteReader& in, const std::vector<DescribedTensor>& tensors) {
  std::unordered_set<std::string_view> names;
  for (const DescribedTensor& described : tensors)
    if (!names.insert(described.name).second)
      return in.error(described.described_at, fmt::format("tensor {} occurs twice", quoted_name(described.name)));
  return ok();
}

}  // namespace

Result<Header> read_header(const InputFile& file, const Types& types) {
  ByteReader in(file);
  Header header;
  in.enter("the header");
  BOOST_OUTCOME_TRY(check_magic(in));
  BOOST_OUTCOME_TRY(header.encoding, read_encoding(in));
  in.set_encoding(header.encoding);
  BOOST_OUTCOME_TRY(const Counts counts, read_counts(in));
  BOOST_OUTCOME_TRY(header.metadata, read_metadata(in, counts.entries));
  header.alignment = alignment_of(header.metadata);
  BOOST_OUTCOME_TRY(header.tensors, read_tensors(in, counts.tensors, types));
  BOOST_OUTCOME_TRY(check_names(in, header.tensors));
  BOOST_OUTCOME_TRY(place_tensors(in, header.alignment, header.tensors));
  return header;
}

}  // namespace ggufmill::gguf
