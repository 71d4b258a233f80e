#pragma once
// Key-value metadata: an ordered list of keys with values in their canonical encoding, that of GGUF version 3
// (little-endian, 64-bit lengths). Values are kept as bytes and decoded only on request.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"

namespace ggufmill {

// Values are those of the file format.
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

// Returns the name of a type ("uint32", "string", "array"); empty if the number is not a known type.
std::string_view metadata_type_name(MetadataType type);
std::optional<MetadataType> metadata_type_named(std::string_view name);
// Returns the size in bytes of one value of a fixed-size type; 0 for strings and arrays.
std::size_t metadata_type_bytes(MetadataType type);

// `bytes` is the data after the type tag in the file. String: u64 length and bytes. Array: u32 element type, u64 count
// and the elements; nested arrays likewise.
struct MetadataValue {
  MetadataType type;
  std::string bytes;

  bool operator==(const MetadataValue&) const = default;
};

MetadataValue metadata_string(std::string_view text);
MetadataValue metadata_bool(bool value);
MetadataValue metadata_unsigned(MetadataType type, std::uint64_t value);  // any integer type; truncates `value`
MetadataValue metadata_float(MetadataType type, double value);            // kFloat32 or kFloat64
// All `items` must be of type `element`; the array contains their bytes.
MetadataValue metadata_array(MetadataType element, const std::vector<MetadataValue>& items);

// Decoders. They return nullopt if the value has another type or does not fit.
std::optional<std::uint64_t> as_unsigned(const MetadataValue& value);  // any integer type, not negative
std::optional<std::int64_t> as_signed(const MetadataValue& value);     // any integer type
std::optional<double> as_number(const MetadataValue& value);           // any integer or float type
std::optional<bool> as_bool(const MetadataValue& value);
// Returns a view into `value`.
std::optional<std::string_view> as_string(GGUFMILL_OUTLIVES_RESULT const MetadataValue& value);
struct ArrayView {
  MetadataType element;
  std::uint64_t count;
  std::string_view bytes;  // bytes of the elements
};
std::optional<ArrayView> as_array(GGUFMILL_OUTLIVES_RESULT const MetadataValue& value);
// Calls `take` for each element of an array, in order, until it returns false. Avoids a list of all elements: a
// vocabulary is long, and a list of its words takes many times its size in bytes. `take` is not called if `array` is
// not an array, nor for a malformed element and those after it. Returns true if all requested elements were available.
bool for_each_item(const MetadataValue& array, const std::function<bool(MetadataValue item)>& take);
// Returns all elements, or the first `at_most`; empty if `array` is not an array or is malformed.
std::vector<MetadataValue> array_items(const MetadataValue& array, std::size_t at_most = SIZE_MAX);
// Returns true if the value is not a string and has no strings, or all of them are UTF-8.
bool is_utf8(const MetadataValue& value);
// Returns the name of the value's type, that of an array with its elements': "uint32", "string[]", "string[][]".
// Elements of an array of arrays are described by the first one that is not empty; "array[]" if there is none.
std::string full_type_name(const MetadataValue& value);
// Returns a human-readable form: strings quoted and truncated, arrays as "array of 32000 string: "a", "b", ...".
std::string describe(const MetadataValue& value, std::size_t width = 60);

struct MetadataEntry {
  std::string key;
  MetadataValue value;
};

// An ordered list with unique keys. Lookup uses a hash table and takes constant time regardless of the number of keys.
// Not thread-safe while being modified.
class Metadata {
 public:
  const std::vector<MetadataEntry>& entries() const GGUFMILL_OUTLIVES_RESULT { return entries_; }
  const MetadataValue* find(std::string_view key) const GGUFMILL_OUTLIVES_RESULT;
  // Appends an entry. Returns false and changes nothing if the key already exists.
  bool add(std::string key, MetadataValue value);
  // Sets a value. An existing key keeps its position; a new key is appended.
  void set(std::string key, MetadataValue value);
  // Removes the key, then appends it, so the order changes. The GGUF writers of the reference do the same.
  void set_at_end(std::string key, MetadataValue value);
  bool remove(std::string_view key);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  void reindex();

  std::vector<MetadataEntry> entries_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;  // key -> index in entries_
};

}  // namespace ggufmill
