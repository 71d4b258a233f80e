#pragma once
// Builds GGUF files for tests, in every version and byte order, valid or deliberately broken.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/metadata.h"
#include "pipeline/core/types.h"

namespace ggufmill {

// Writes the primitives in the encoding of one version and byte order. Nothing is checked, so that anything can be
// written.
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
  GgufBytes& length(std::uint64_t value);                         // 32 or 64 bits
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
  std::string_view append_value(MetadataType type, std::string_view canonical);  // returns the rest

  std::uint32_t version_;
  bool big_endian_;
  std::string bytes_;
};

// A well-formed file: fill the members, then call build(). Tensors are stored in order, each padded to `alignment`. The
// metadata must contain the alignment unless it is 32.
struct GgufBuilder {
  struct TensorSpec {
    std::string name;
    std::vector<std::uint64_t> dims;
    std::string type;  // such as "Q4_K"
    std::string data;  // as in a little-endian file
  };

  Types types;  // of tensors
  std::uint32_t version = 3;
  bool big_endian = false;
  std::uint64_t alignment = 32;
  std::vector<MetadataEntry> metadata;
  std::vector<TensorSpec> tensors;

  GgufBuilder& set_alignment(std::uint32_t value);  // also sets the metadata entry
  // Adds a tensor whose data counts up from `first` and has the right size for the type.
  GgufBuilder& add_tensor(std::string name, std::vector<std::uint64_t> dims, std::string type = "F32",
                          unsigned char first = 0);

  std::string build() const;
  // Writes the result of build() to `path`. Throws std::runtime_error.
  void write(const std::string& path) const;
};

// Returns one entry of every metadata type, arrays of each, and nested arrays.
std::vector<MetadataEntry> every_metadata_type();

// A GGUF file that is wrong in a way known to have broken a reader. It must give exactly one error with exit code 4,
// the text `says`, and the byte offset `at`.
struct HostileFile {
  std::string name;
  std::string bytes;
  std::string says;      // part of the error's first line
  std::uint64_t at = 0;  // byte offset in the error
};

// Returns single files, in versions 1 and 3 and both byte orders if that makes a difference.
std::vector<HostileFile> hostile_files();

}  // namespace ggufmill
