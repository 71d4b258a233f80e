#pragma once
// Tensor types: ids and names as in GGUF, block size in elements and bytes.
// Source of the numbers: ggml, include/ggml.h and src/ggml-common.h (MIT).

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
  kFloat,      // one element per block, IEEE or bfloat
  kInteger,    // copied, or decoded to numbers; encoded only by a cast
  kQuantized,  // blocks of elements with shared scales
  kForeign,    // provided by an external kernel module
};

// Format of the scales of a block, used to check that the output is finite.
enum class ScaleFormat : std::uint8_t {
  kNone,  // every byte is valid
  kF16,
  kBf16,
  kF32,
  kF64,
  kE8m0,  // 0xff is NaN
  kE4m3,  // 8-bit float without infinities: 0x7f and 0xff are NaN
  kE5m2,  // 8-bit float with the exponent range of F16
  kIq1m,  // an F16 in the high nibbles of four 16-bit words
};

// `count` consecutive scales, starting at byte `offset` of a block. Floating-point elements count as their own scales.
struct ScaleField {
  ScaleFormat format = ScaleFormat::kNone;
  std::uint16_t offset = 0;
  std::uint16_t count = 0;
};

// `count` consecutive words of `width` bytes, starting at byte `offset` of a block. These differ between byte orders.
struct WordField {
  std::uint16_t offset = 0;
  std::uint16_t count = 0;
  std::uint16_t width = 0;
};

struct TypeInfo {
  TypeId id;
  std::string_view name;  // as users write it: "Q4_K"
  TypeClass type_class;
  std::uint32_t block_elements;        // at least 1
  std::uint32_t block_bytes;           // at least 1
  ScaleField scales;                   // values of a block that must be finite
  WordField words[2];                  // words that are byte-swapped
  std::uint32_t row_header_bytes = 0;  // in front of the blocks of each row; only foreign types have headers
  // Alignment in bytes that kernels require of the values in memory.
  std::uint32_t alignment() const { return block_elements == 1 ? block_bytes : 1; }
  double bits_per_weight() const { return 8.0 * block_bytes / block_elements; }
  bool is_f32() const { return name == "F32"; }
  bool is_quantized() const { return type_class == TypeClass::kQuantized || type_class == TypeClass::kForeign; }
};

// Types known to every program, in order of id. They are constants, so pointers to them are the same everywhere.
std::span<const TypeInfo> built_in_types();
// Types that occur only in sources other than GGUF: 8-bit floats, unsigned integers, booleans. They are decoded to
// numbers or copied; GGUF files never contain them, and nothing is quantized to them. Their ids start at
// kFirstSourceType, below those of foreign types. Also constants.
inline constexpr TypeId kFirstSourceType = 0x8000;
std::span<const TypeInfo> source_types();
// Returns null if there is no such source type.
const TypeInfo* find_source_type(TypeId id);
const TypeInfo* find_source_type(std::string_view name);
// Returns true if the type is a source type.
inline bool is_source_type(const TypeInfo& type) {
  return type.id >= kFirstSourceType && type.id < 2 * kFirstSourceType;
}
// Returns a built-in or source type that must exist ("F32"); aborts the program if it does not.
const TypeInfo& type_named(std::string_view name);

// A type of ik_llama.cpp, which GGUF files of that project contain and kernel modules may provide
// (GGUFMILL_FIRST_IK_TYPE).
struct IkType {
  TypeId id;
  std::string_view name;
};
std::span<const IkType> ik_types();
inline constexpr std::string_view kIkHelp =
    "the kernel module ik (package ggufmill-ik) adds types of ik_llama.cpp; `ggufmill types` lists what is available";

// Types known to a context: the built-in ones and those of its kernel modules. Copies share them, and pointers to them
// stay valid while any copy exists. Thread-safe, except for add().
class Types {
 public:
  // Returns all types: built-in ones by id, then foreign ones in the order added.
  std::vector<const TypeInfo*> all() const;
  // Returns null if there is no such type.
  const TypeInfo* find(TypeId id) const;
  const TypeInfo* find(std::string_view name) const;  // ignores letter case

  // Adds a foreign type of a kernel module; must be called before copies exist. Adding the same type again is allowed;
  // adding a different type under a known id or name is an error with exit code 5 that names the modules.
  Status add(TypeId id, std::string name, std::uint32_t block_elements, std::uint32_t block_bytes,
             const std::string& module = {}, std::uint32_t row_header_bytes = 0);

 private:
  struct Foreign {
    std::string name, module;
    TypeInfo info;
  };
  // Returns who defined the type, as text for a message.
  std::string definer_of(const TypeInfo& type) const;
  std::shared_ptr<std::deque<Foreign>> foreign_;  // addresses are stable; null: none
};

// Returns the size in bytes of a row of `columns` elements, which form complete blocks.
inline std::uint64_t row_bytes(const TypeInfo& type, std::uint64_t columns) {
  return type.row_header_bytes + columns / type.block_elements * type.block_bytes;
}
// Returns the size in bytes of `elements` consecutive elements, with one header if the type has any: those of a row, or
// of several rows of a type without headers. Fails if they do not form complete blocks or if the size overflows 64
// bits.
Result<std::uint64_t> bytes_of(const TypeInfo& type, std::uint64_t elements);

}  // namespace ggufmill
