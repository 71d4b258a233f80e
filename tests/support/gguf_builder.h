#pragma once
// GGUF files made in tests, of every version and byte order, whole or broken on purpose.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/metadata.h"
#include "pipeline/core/types.h"

namespace ggufmill {

// The primitives, in the encoding of one kind of file. Nothing is checked, so that anything can be written.
class GgufBytes {
 public:
  explicit GgufBytes(std::uint32_t version = 3, bool big_endian = false) : version_(version), big_endian_(big_endian) {}

  GgufBytes& raw(std::string_view bytes);
  template <class T>
  GgufBytes& number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    return word({bytes, sizeof value});
  }
  GgufBytes& u32(std::uint32_t value) { return number(value); }
  GgufBytes& u64(std::uint64_t value) { return number(value); }
  GgufBytes& length(std::uint64_t value);                         // of 32 or 64 bits
  GgufBytes& text(std::string_view text);                         // length and bytes
  GgufBytes& head(std::uint64_t tensors, std::uint64_t entries);  // magic, version and counts
  GgufBytes& entry(std::string_view key, const MetadataValue& value);
  GgufBytes& key(std::string_view key, std::uint32_t type) { return text(key).u32(type); }
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                    std::uint64_t offset);
  GgufBytes& pad(std::uint64_t alignment = 32);  // zeros up to a multiple
  GgufBytes& zeros(std::uint64_t bytes) { return raw(std::string(bytes, '\0')); }

  const std::string& bytes() const { return bytes_; }

 private:
  GgufBytes& word(std::string_view little_endian);
  std::string_view append_value(MetadataType type, std::string_view canonical);  // returns what is left

  std::uint32_t version_;
  bool big_endian_;
  std::string bytes_;
};

// A well-formed file: fill the members, then build(). Tensors lie one after another, each padded to `alignment`; the
// metadata must say the alignment where it is not 32.
struct GgufBuilder {
  struct TensorSpec {
    std::string name;
    std::vector<std::uint64_t> dims;
    std::string type;  // "Q4_K"
    std::string data;  // as in a little-endian file
  };

  Types types;  // of tensors
  std::uint32_t version = 3;
  bool big_endian = false;
  std::uint64_t alignment = 32;
  std::vector<MetadataEntry> metadata;
  std::vector<TensorSpec> tensors;

  GgufBuilder& set_alignment(std::uint32_t value);  // and the metadata entry
  // With data that counts up from `first`, of the right size for the type.
  GgufBuilder& add_tensor(std::string name, std::vector<std::uint64_t> dims, std::string type = "F32",
                          unsigned char first = 0);

  std::string build() const;
  // Writes build() to `path`. Throws std::runtime_error.
  void write(const std::string& path) const;
};

// One entry of every metadata type, arrays of each and nested ones.
std::vector<MetadataEntry> every_metadata_type();

}  // namespace ggufmill
