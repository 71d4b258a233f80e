#pragma once
// Key-value metadata: an ordered list of keys with values in their canonical encoding, that of GGUF version 3
// (little-endian, 64-bit lengths). Values are carried as bytes and decoded only when somebody asks.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// The numbers are those of the file format.
enum class MetadataType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "uint32", "string", "array"; empty for a number that is no type.
std::string_view metadata_type_name(MetadataType type);
std::optional<MetadataType> metadata_type_named(std::string_view name);
// Bytes of one value of a fixed size; 0 for strings and arrays.
std::size_t metadata_type_bytes(MetadataType type);

// `bytes` is what follows the type tag in the file: for a string u64 length and bytes; for an array u32 element type,
// u64 count and the elements, nested arrays likewise.
struct MetadataValue {
  MetadataType type;
  std::string bytes;

  bool operator==(const MetadataValue&) const = default;
};

MetadataValue metadata_string(std::string_view text);
MetadataValue metadata_bool(bool value);
MetadataValue metadata_unsigned(MetadataType type, std::uint64_t value);  // any integer type; value is truncated to it
MetadataValue metadata_float(MetadataType type, double value);            // kFloat32 or kFloat64
// All `items` of type `element`; each contributes its bytes.
MetadataValue metadata_array(MetadataType element, const std::vector<MetadataValue>& items);

// Decoders: nothing when the value is of another kind or does not fit.
std::optional<std::uint64_t> as_unsigned(const MetadataValue& value);  // any integer type, not negative
std::optional<std::int64_t> as_signed(const MetadataValue& value);     // any integer type
std::optional<double> as_number(const MetadataValue& value);           // any integer or float type
std::optional<bool> as_bool(const MetadataValue& value);
std::optional<std::string_view> as_string(const MetadataValue& value);  // a view into `value`
struct ArrayView {
  MetadataType element;
  std::uint64_t count;
  std::string_view bytes;  // of the elements
};
std::optional<ArrayView> as_array(const MetadataValue& value);
// Calls `take` for one element of an array after the other, until it returns false: a vocabulary is long, and a list of
// its words takes many times its bytes. Not at all when `array` is none, and not for what is malformed and what follows
// it. Whether all elements could be had that were asked for.
bool for_each_item(const MetadataValue& array, const std::function<bool(MetadataValue item)>& take);
// All of them, or the first `at_most`; empty when `array` is none or is malformed.
std::vector<MetadataValue> array_items(const MetadataValue& array, std::size_t at_most = SIZE_MAX);
// For people: strings quoted and cut, arrays as "array of 32000 string: "a", "b", ...".
std::string describe(const MetadataValue& value, std::size_t width = 60);

struct MetadataEntry {
  std::string key;
  MetadataValue value;
};

// Ordered, keys unique. Look-up is by hash: constant time whatever the number of keys. Not thread-safe while changed.
class Metadata {
 public:
  const std::vector<MetadataEntry>& entries() const { return entries_; }
  const MetadataValue* find(std::string_view key) const;
  // False, and nothing changed, when the key is there.
  bool add(std::string key, MetadataValue value);
  // Keeps the place of a key that is there; a new one goes to the end.
  void set(std::string key, MetadataValue value);
  // As GGUF writers of the reference do: removes the key, then appends it, so the order changes.
  void set_at_end(std::string key, MetadataValue value);
  bool remove(std::string_view key);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  void reindex();

  std::vector<MetadataEntry> entries_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;  // key -> place in entries_
};

}  // namespace ggufmill
