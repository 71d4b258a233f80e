#pragma once
// Tensor types: ids and names as in GGUF, block size in elements and bytes.
// Source of the numbers: ggml, include/ggml.h and src/ggml-common.h (MIT).

#include <cstdint>
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

// Format of a field of a type. Words have a byte order; scales have one as well, and must be finite.
enum class FieldFormat : std::uint8_t {
  kNone,
  kWord8,
  kWord16,
  kWord32,
  kWord64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kE8m0,  // 0xff is NaN
  kE4m3,  // 8-bit float without infinities: 0x7f and 0xff are NaN
  kE5m2,  // 8-bit float with the exponent range of F16
  kIq1m,  // an F16 in the high nibbles of four 16-bit words
};
inline bool is_scale(FieldFormat format) { return format >= FieldFormat::kF16; }

// `count` consecutive words or scales, starting at byte `offset` of a block, or of the header of a row. Floating-point
// elements count as their own scales.
struct BlockField {
  FieldFormat format = FieldFormat::kNone;
  std::uint32_t offset = 0;
  std::uint32_t count = 0;
  bool in_header = false;

  std::size_t width() const;  // bytes of a word
  bool operator==(const BlockField&) const = default;
  std::size_t bytes() const { return (format == FieldFormat::kIq1m ? 4 : std::size_t{count}) * width(); }
};

// The rows for which a type is among the default candidates of a target (TargetOptions).
enum class CandidateFor : std::uint8_t {
  kNone,
  kWideRows,    // rows of a multiple of 256 columns
  kNarrowRows,  // other rows
  kAllRows,
};

// Facts about a type besides its layout. Code asks for a fact and never compares names.
struct TypeFacts {
  // general.file_type of a file most of whose weights have this type (src/llama-model-loader.cpp of llama.cpp, MIT);
  // negative if there is none.
  std::int32_t file_type = -1;
  // Name of the type to which llama.cpp converts activations that it multiplies with rows of this type (vec_dot_type in
  // ggml-cpu, MIT); empty if it does not multiply them.
  std::string_view partner{};
  CandidateFor candidate = CandidateFor::kNone;
  bool search = false;          // there is a search for this type: a kernel of the program, or of its module
  bool lattice = false;         // rows that already are values of this type are recognised
  bool covariance = false;      // levels can be chosen with the covariance of the inputs
  bool has_book = false;        // values of several columns are entries of a code book
  bool of_activations = false;  // programs convert activations to it while they compute; files do not have it
};

struct TypeInfo {
  TypeId id;
  std::string_view name;  // as users write it: "Q4_K"
  TypeClass type_class;
  std::uint32_t block_elements;        // at least 1
  std::uint32_t block_bytes;           // at least 1
  BlockField fields[8]{};              // the used ones first; bytes in no field are words of 8 bits
  std::uint32_t row_header_bytes = 0;  // in front of the blocks of each row; only foreign types have headers
  TypeFacts facts{};                   // of foreign types: `search` only; interleaved types have none, see plain_type()
  // If rows are interleaved (interleaved.h): the type of the rows, and the number of rows in a group.
  const TypeInfo* plain = nullptr;
  std::uint32_t group_rows = 1;
  // The type of tensors whose rows cannot be interleaved, if it is not `plain`, which then occurs only in groups.
  const TypeInfo* ungrouped = nullptr;
  // Alignment in bytes that kernels require of the values in memory.
  std::uint32_t alignment() const { return block_elements == 1 ? block_bytes : 1; }
  double bits_per_weight() const { return 8.0 * block_bytes / block_elements; }
  bool is_f32() const { return name == "F32"; }
  bool is_quantized() const { return type_class == TypeClass::kQuantized || type_class == TypeClass::kForeign; }
  // Returns false for foreign types whose module does not describe their fields.
  bool is_described() const { return type_class != TypeClass::kForeign || fields[0].format != FieldFormat::kNone; }
  // Returns the first field with scales, or a field without format.
  BlockField scales() const {
    for (const BlockField& field : fields)
      if (is_scale(field.format)) return field;
    return {};
  }
  bool has_scales() const { return scales().count != 0; }
};

// Returns the type of the rows of an interleaved type; any other type itself.
inline const TypeInfo& plain_type(const TypeInfo& type) { return type.plain ? *type.plain : type; }

// Returns the type that a tensor has instead of an interleaved type if its rows cannot be interleaved; any other type
// itself. Recipes mean interleaved types as well where they name this one.
inline const TypeInfo& ungrouped_type(const TypeInfo& type) {
  return type.ungrouped ? *type.ungrouped : plain_type(type);
}

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

// A way to encode values, by the name that users give it: `reference`, `search`, `covariance`, or one that kernel
// modules add to types that exist.
struct EncoderMethod {
  std::string name;
  std::vector<const TypeInfo*> types{};  // by id; empty for the methods of every program, see has_method()
};
// The methods of every program. They are constants, so pointers to them are the same everywhere.
const EncoderMethod& reference_method();
const EncoderMethod& search_method();
const EncoderMethod& covariance_method();

// Returns help for a missing kernel module: its package and the option.
std::string module_help(std::string_view module);

// Types known to a context, the built-in ones and those of its kernel modules, and the encoders that modules add.
// Copies share them, and pointers to them stay valid while any copy exists. Thread-safe, except for the functions that
// add.
class Types {
 public:
  // Returns all types: built-in ones by id, then foreign ones in the order added; without interleaved ones, and without
  // those whose rows files have only interleaved.
  std::vector<const TypeInfo*> all() const;
  // Returns the interleaved types of these, which find() finds as well.
  std::vector<const TypeInfo*> interleaved() const;
  // Returns null if there is no such type.
  const TypeInfo* find(TypeId id) const;
  const TypeInfo* find(std::string_view name) const;  // ignores letter case
  // Returns a type that a user can choose; null if there is none, or if files store its rows only interleaved.
  const TypeInfo* find_choice(std::string_view name) const;
  // Returns the name of the kernel module that added a type or its plain type; empty if it is built in.
  std::string module_of(const TypeInfo& type) const;
  // Returns the names of the kernel modules that have added types, each once.
  std::vector<std::string> modules() const;
  bool have_module(std::string_view module) const;

  // Returns all ways to encode: `reference`, `search`, `covariance`, then those of modules in the order added.
  std::vector<const EncoderMethod*> encoders() const;
  // Returns null if there is no such encoder.
  const EncoderMethod* find_encoder(std::string_view name) const;

  // Adds a foreign type of a kernel module, and its interleaved type; must be called before copies exist. Adding the
  // same type again is allowed; adding a different type under a known id or name is an error with exit code 5 that
  // names the modules. Ignores the class and the encoders of `type`.
  Status add(const TypeInfo& type, const std::string& module = {});
  // Adds an encoder to a known type; must be called before copies exist. A built-in type gets no `search`, and no type
  // gets `covariance`.
  void add_encoder(std::string_view name, TypeId type);

 private:
  struct Foreign;
  struct Added;
  // Returns who defined the type, as text for a message.
  std::string definer_of(const TypeInfo& type) const;
  void add_interleaved(const TypeInfo& plain, const std::string& module);
  Added& added();
  std::shared_ptr<Added> added_;  // null: nothing was added
};

// Returns the size in bytes of a row of `columns` elements, which form complete blocks: the header, then the blocks. At
// most 2^64 - 1. Everything that divides tensors asks this function or grain_bytes().
std::uint64_t row_bytes(const TypeInfo& type, std::uint64_t columns);
// Returns the size of the smallest part of such rows that can be copied, checked or swapped separately: a block, or a
// row if rows have headers.
std::uint64_t grain_bytes(const TypeInfo& type, std::uint64_t columns);

// Returns the error for a name that is none of `types` and none of `words`, without a place: exit code 2, with the
// nearest name, the module that adds the type, or the wing that this build omits.
Error unknown_type(std::string_view name, const Types& types, std::vector<std::string> words = {});

// Returns the size in bytes of `elements` consecutive elements, with one header if the type has any: those of a row, or
// of several rows of a type without headers. Fails if they do not form complete blocks or if the size overflows 64
// bits.
Result<std::uint64_t> bytes_of(const TypeInfo& type, std::uint64_t elements);

}  // namespace ggufmill
