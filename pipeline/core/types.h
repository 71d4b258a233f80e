#pragma once
// Tensor types: ids and names as in GGUF, block size in elements and bytes.
// Source of the figures: ggml, include/ggml.h and src/ggml-common.h (MIT).

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

using TypeId = std::uint32_t;

enum class TypeClass : std::uint8_t {
  kFloat,      // one element a block, IEEE or bfloat
  kInteger,    // copied, or read as numbers; never written from numbers
  kQuantized,  // blocks of elements with shared scales
  kForeign,    // brought by a kernel module from outside the tree
};

// How the scales of a block are read, for the check that what was written is finite.
enum class ScaleFormat : std::uint8_t {
  kNone,  // every byte is valid
  kF16,
  kBf16,
  kF32,
  kF64,
  kE8m0,  // 0xff is NaN
  kE4m3,  // a float of 8 bits without infinities: 0x7f and 0xff are NaN
  kE5m2,  // a float of 8 bits with the exponents of F16
  kIq1m,  // an F16 in the high nibbles of four 16-bit words
};

// `count` consecutive scales from byte `offset` of a block. Elements that are floats count as their own scales.
struct ScaleField {
  ScaleFormat format = ScaleFormat::kNone;
  std::uint16_t offset = 0;
  std::uint16_t count = 0;
};

// `count` consecutive words of `width` bytes from byte `offset` of a block: what differs between byte orders.
struct WordField {
  std::uint16_t offset = 0;
  std::uint16_t count = 0;
  std::uint16_t width = 0;
};

struct TypeInfo {
  TypeId id;
  std::string_view name;  // as users write it: "Q4_K"
  TypeClass type_class;
  std::uint32_t block_elements;  // at least 1
  std::uint32_t block_bytes;     // at least 1
  ScaleField scales;             // what must be finite in a block
  WordField words[2];            // what is swapped between byte orders
  // Its values lie at multiples of so many bytes in memory when a kernel reads them.
  std::uint32_t alignment() const { return block_elements == 1 ? block_bytes : 1; }
  double bits_per_weight() const { return 8.0 * block_bytes / block_elements; }
  bool is_f32() const { return name == "F32"; }
  bool is_quantized() const { return type_class == TypeClass::kQuantized || type_class == TypeClass::kForeign; }
};

// The types that every program knows, in order of id. They are constant: pointers to them are the same everywhere.
std::span<const TypeInfo> built_in_types();
// Types that sources other than GGUF have: floats of 8 bits, unsigned integers, truth values. They are read as numbers
// or copied; no GGUF holds one, and nothing is quantized to one. Their ids are from kFirstSourceType on, below those of
// foreign types. Constant, too.
inline constexpr TypeId kFirstSourceType = 0x8000;
std::span<const TypeInfo> source_types();
// Null when there is none.
const TypeInfo* find_source_type(TypeId id);
const TypeInfo* find_source_type(std::string_view name);
// Whether it is one of them.
inline bool is_source_type(const TypeInfo& type) {
  return type.id >= kFirstSourceType && type.id < 2 * kFirstSourceType;
}
// A built-in type or one of sources that must exist ("F32"): ends the program when it does not.
const TypeInfo& type_named(std::string_view name);

// The types that one context knows: the built-in ones, and those that its kernel modules bring. Copies share them;
// what they point to stays valid while any copy lives. Thread-safe, but for add().
class Types {
 public:
  // In order of id, foreign ones last, in the order added.
  std::vector<const TypeInfo*> all() const;
  // Null when there is none.
  const TypeInfo* find(TypeId id) const;
  const TypeInfo* find(std::string_view name) const;  // letter case does not matter

  // Adds a foreign type; call it before there are copies. The same type twice is no error; another type under a known
  // id or name is. Exit code 5.
  Status add(TypeId id, std::string name, std::uint32_t block_elements, std::uint32_t block_bytes);

 private:
  struct Foreign {
    std::string name;
    TypeInfo info;
  };
  std::shared_ptr<std::deque<Foreign>> foreign_;  // addresses stay; null: none
};

// Bytes of `elements` consecutive elements; an error when that is no whole number of blocks or overflows 64 bits.
Result<std::uint64_t> bytes_of(const TypeInfo& type, std::uint64_t elements);

}  // namespace ggufmill
