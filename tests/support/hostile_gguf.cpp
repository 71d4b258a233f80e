
#include "tests/support/gguf_builder.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMax = ~std::uint64_t{0};
constexpr std::uint64_t kHead = 24;  // bytes of magic, version and counts
using Dims = std::vector<std::uint64_t>;

GgufBytes head(std::uint64_t tensors, std::uint64_t entries) { return std::move(GgufBytes().head(tensors, entries)); }

// One entry, whose value begins at byte 37.
GgufBytes one_key(std::uint32_t type) { return std::move(GgufBytes().head(0, 1).key("k", type)); }

// One tensor "t", described from byte 24; its dimensions begin at 33, its type at 37 + 8 * rank.
std::string one_tensor(const Dims& dims, std::uint32_t type, std::uint64_t offset, std::uint64_t data = 0) {
  return GgufBytes().head(1, 0).tensor("t", dims, type, offset).pad().zeros(data).bytes();
}

std::string two_tensors(const char* names, std::uint64_t first, std::uint64_t second) {
  GgufBytes file;
  file.head(2, 0).tensor({names, 1}, {8}, 0, first).tensor({names + 1, 1}, {8}, 0, second);
  return file.pad().zeros(128).bytes();
}

std::string alignment_file(const MetadataValue& value) {
  return GgufBytes().head(0, 1).entry("general.alignment", value).zeros(64).bytes();
}

std::string nested_arrays(int depth) {
  GgufBytes file = one_key(9);
  for (int i = 1; i < depth; ++i) file.u32(9).u64(1);
  return file.u32(0).u64(1).raw("x").zeros(64).bytes();
}

using Files = std::vector<HostileFile>;

void add_heads(Files& out) {
  out.push_back({"empty file", "", "not a GGUF file", 0});
  out.push_back({"half a magic", "GG", "not a GGUF file", 0});
  out.push_back({"magic alone", "GGUF", "4 more bytes are needed, but only 0 are left", 4});
  out.push_back({"another magic", "FUGG" + std::string(60, '\0'), "begins with 'FUGG'", 0});
  out.push_back({"a Git LFS pointer", "version https://git-lfs.github.com/spec/v1\n", "not a GGUF file", 0});
  out.push_back({"version 0", GgufBytes(0).head(0, 0).bytes(), "GGUF version 0 ", 4});
  out.push_back({"a version to come", GgufBytes(4).head(0, 0).bytes(), "GGUF version 4 ", 4});
  out.push_back({"a version to come, big-endian", GgufBytes(4, true).head(0, 0).bytes(), "GGUF version 4 ", 4});
  out.push_back(
      {"no counts", GgufBytes().raw("GGUF").u32(3).zeros(7).bytes(), "8 more bytes are needed, but only 7", 8});
}

void add_counts(Files& out) {
  // For entries and tensors of these sizes, the products wrap around 2^64.
  for (const std::uint64_t count : {kMax, kMax / 14 + 2, kMax / 24 + 2, std::uint64_t{1} << 63, std::uint64_t{3}}) {
    out.push_back({"entries: " + std::to_string(count), head(0, count).zeros(40).bytes(), "metadata entries", 16});
    out.push_back(
        {"tensors: " + std::to_string(count), head(count, 0).zeros(70).bytes(), "do not fit in the remaining 70", 8});
  }
  out.push_back({"counts that fit alone only", head(2, 2).zeros(60).bytes(), "2 metadata entries and 2 tensors", 16});
  out.push_back({"version 1: entries", GgufBytes(1).head(0, 0xffffffff).zeros(20).bytes(), "4294967295 metadata", 12});
}

void add_keys(Files& out) {
  for (const std::uint64_t length : {kMax, kMax - 7, std::uint64_t{1} << 63, std::uint64_t{100}})
    out.push_back({"key length " + std::to_string(length), head(0, 1).u64(length).zeros(60).bytes(), "are needed", 32});
  out.push_back({"a key of 65536 bytes", head(0, 1).text(std::string(65536, 'k')).zeros(60).bytes(), "65535", kHead});
  out.push_back({"an empty key", head(0, 1).key("", 0).zeros(9).bytes(), "entry 1 has an empty key", kHead});
  out.push_back(
      {"a key with a zero", head(0, 1).key({"a\0b", 3}, 0).zeros(9).bytes(), "'a\\x00b' contains a zero", kHead});
  out.push_back({"a key that is not UTF-8", head(0, 1).key("a\xc0\x80", 0).zeros(9).bytes(), "is not UTF-8", kHead});
  out.push_back({"the same key twice", head(0, 2).key("key", 0).raw("x").key("key", 4).u32(1).bytes(),
                 "metadata key 'key' appears twice", 40});
}

void add_values(Files& out) {
  for (const std::uint32_t type : {13u, 99u, 0x80000000u, 0xffffffffu})
    out.push_back({"value type " + std::to_string(type), one_key(type).zeros(16).bytes(), "unknown metadata type", 33});
  for (const std::uint64_t length : {kMax, kMax - 7, std::uint64_t{1} << 63, std::uint64_t{100}})
    out.push_back(
        {"string length " + std::to_string(length), one_key(8).u64(length).zeros(60).bytes(), "are needed", 45});
  out.push_back(
      {"a value cut short", one_key(10).zeros(7).bytes(), "8 more bytes are needed, but only 7 are left", 37});
  out.push_back({"a bool of 2", one_key(7).raw("\2").zeros(9).bytes(), "a bool is 2", 37});
  out.push_back({"a bool of 255 in an array", one_key(9).u32(7).u64(2).raw("\1\xff").bytes(), "a bool is 255", 50});
  out.push_back({"version 1: a string length", GgufBytes(1).head(0, 1).key("k", 8).length(0xffffffff).bytes(),
                 "4294967295 more bytes", 29});
}

void add_arrays(Files& out) {
  for (const std::uint32_t element : {13u, 0xffffffffu})
    out.push_back({"element type " + std::to_string(element), one_key(9).u32(element).u64(0).bytes(),
                   "unknown array element type", 37});
  for (const std::uint32_t element : {0u, 4u, 8u, 9u, 10u})
    for (const std::uint64_t count : {kMax, kMax / 8 + 2, kMax / 4 + 2, kMax / 12 + 2, std::uint64_t{100}})
      out.push_back({"array of " + std::to_string(count) + " of type " + std::to_string(element),
                     one_key(9).u32(element).u64(count).zeros(40).bytes(), "does not fit in the remaining 40 bytes",
                     37});
  out.push_back({"a string in an array", one_key(9).u32(8).u64(1).u64(50).zeros(40).bytes(), "50 more bytes", 57});
  out.push_back({"arrays nested 9 deep", nested_arrays(9), "nested deeper than 8", 37 + 8 * 12});
  out.push_back({"arrays nested 5000 deep", nested_arrays(5000), "nested deeper than 8", 37 + 8 * 12});
}

void add_alignments(Files& out) {
  for (const std::uint32_t value : {0u, 3u, 31u, 48u, 1u << 21, 1u << 31, 0xffffffffu})
    out.push_back({"alignment " + std::to_string(value),
                   alignment_file(metadata_unsigned(MetadataType::kUint32, value)), "not a power of two", kHead});
  out.push_back({"alignment of uint64", alignment_file(metadata_unsigned(MetadataType::kUint64, 32)),
                 "of type uint64, not uint32", kHead});
  out.push_back({"alignment as text", alignment_file(metadata_string("32")), "of type string, not uint32", kHead});
}

void add_shapes(Files& out) {
  constexpr std::uint64_t k63 = std::uint64_t{1} << 63, k32 = std::uint64_t{1} << 32;
  for (const std::uint32_t rank : {5u, 9u, 0xffffffffu})
    out.push_back({"rank " + std::to_string(rank), head(1, 0).text("t").u32(rank).zeros(90).bytes(),
                   "dimensions, more than the limit of 4", 33});
  for (const Dims& dims : {Dims{kMax}, Dims{k63}, Dims{kMax, 2}, Dims{k32, k32}, Dims{k32, k32 / 2}, Dims{0, k63},
                           Dims{k32, 0, k32}, Dims{k32, k32, k32, k32}})
    out.push_back({"dimensions", one_tensor(dims, 0, 0), "more than 2^63 - 1 elements", 33});
  out.push_back({"2^63 - 1 bytes too many", one_tensor({k63 - 1}, 28, 0), "exceed 2^64 bytes", kHead});
  out.push_back({"2^61 floats", one_tensor({k63 / 4}, 0, 0), "past the end", kHead});
  for (const std::uint64_t columns : {1u, 31u, 33u})
    out.push_back({"a row of " + std::to_string(columns), one_tensor({columns, 64}, 2, 0, 999),
                   "tensor 't' has rows of ", kHead});
}

void add_types(Files& out) {
  for (const std::uint32_t type : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u})
    out.push_back(
        {"removed type " + std::to_string(type), one_tensor({256}, type, 0, 999), "), which was removed", 45});
  for (const std::uint32_t type : {9999u, 0x7fffffffu, 0x80000000u, 0xffffffffu})
    out.push_back(
        {"type " + std::to_string(type), one_tensor({256}, type, 0, 999), "tensor 't' is of unknown type", 45});
}

void add_places(Files& out) {
  out.push_back({"an offset past the end", one_tensor({8}, 0, 1024, 64), "past the end", kHead});
  out.push_back({"data cut short", one_tensor({8}, 0, 0, 31), "past the end of the file", kHead});
  out.push_back({"no data at all", one_tensor({8}, 0, 0), "past the end of the file", kHead});
  out.push_back(
      {"no padding before the data", GgufBytes().head(1, 0).tensor("t", {0}, 0, 0).bytes(), "past the end", kHead});
  for (const std::uint64_t offset : {kMax - 31, (std::uint64_t{1} << 63) - 32, std::uint64_t{1} << 63})
    out.push_back({"offset " + std::to_string(offset), one_tensor({8}, 0, offset, 64), "past the end", kHead});
  for (const std::uint64_t offset : {kMax, std::uint64_t{1}, std::uint64_t{16}, std::uint64_t{33}})
    out.push_back(
        {"offset " + std::to_string(offset), one_tensor({8}, 0, offset, 64), "not a multiple of the align", kHead});
  out.push_back({"two tensors in one place", two_tensors("ab", 0, 0), "tensor 'b' overlaps tensor 'a'", 57});
  out.push_back(
      {"two tensors in one place, turned round", two_tensors("ab", 32, 32), "tensor 'b' overlaps tensor 'a'", 57});
  GgufBytes larger;
  larger.head(2, 0).tensor("a", {8}, 0, 32).tensor("b", {9}, 0, 0).pad().zeros(128);
  out.push_back({"a tensor that reaches into the next", larger.bytes(), "tensor 'a' overlaps tensor 'b'", kHead});
}

void add_names(Files& out) {
  out.push_back({"the same name twice", two_tensors("aa", 0, 32), "tensor 'a' appears twice", 57});
  for (const std::uint64_t length : {kMax, std::uint64_t{1} << 63, std::uint64_t{100}})
    out.push_back(
        {"name length " + std::to_string(length), head(1, 0).u64(length).zeros(60).bytes(), "are needed", 32});
  out.push_back({"a name of 65536 bytes", head(1, 0).text(std::string(65536, 'n')).zeros(60).bytes(), "65535", kHead});
  GgufBytes zero, broken;
  zero.head(1, 0).tensor({"a\0b", 3}, {8}, 0, 0).pad().zeros(32);
  broken.head(1, 0).tensor("\xff", {8}, 0, 0).pad().zeros(32);
  out.push_back({"a name with a zero", zero.bytes(), "contains a zero byte", kHead});
  out.push_back({"a name that is not UTF-8", broken.bytes(), "'\\xff' is not UTF-8", kHead});
  out.push_back(
      {"a tensor cut short", head(1, 0).text("t").u32(1).u64(8).u32(0).raw("1234").bytes(), "but only 4 are left", 49});
}

}  // namespace

std::vector<HostileFile> hostile_files() {
  Files out;
  for (const auto add : {add_heads, add_counts, add_keys, add_values, add_arrays, add_alignments, add_shapes, add_types,
                         add_places, add_names})
    add(out);
  return out;
}

}  // namespace ggufmill
