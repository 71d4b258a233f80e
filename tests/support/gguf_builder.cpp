#include "tests/support/gguf_builder.h"

#include <algorithm>
#include <span>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/types.h"
#include "tests/support/files.h"

namespace ggufmill {
namespace {

template <class T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

GgufBytes& GgufBytes::raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

GgufBytes& GgufBytes::word(std::string_view little_endian) {
  std::string bytes(little_endian);
  if (big_endian_) std::reverse(bytes.begin(), bytes.end());
  return raw(bytes);
}

GgufBytes& GgufBytes::length(std::uint64_t value) {
  return version_ == 1 ? u32(static_cast<std::uint32_t>(value)) : u64(value);
}

GgufBytes& GgufBytes::text(std::string_view text) { return length(text.size()).raw(text); }

GgufBytes& GgufBytes::head(std::uint64_t tensors, std::uint64_t entries) {
  return raw("GGUF").u32(version_).length(tensors).length(entries);
}

std::string_view GgufBytes::append_value(MetadataType type, std::string_view canonical) {
  if (const std::size_t width = metadata_type_bytes(type)) {
    word(canonical.substr(0, width));
    return canonical.substr(width);
  }
  if (type == MetadataType::kString) {
    const auto bytes = take<std::uint64_t>(canonical);
    text(canonical.substr(0, bytes));
    return canonical.substr(bytes);
  }
  const auto element = take<std::uint32_t>(canonical);
  const auto count = take<std::uint64_t>(canonical);
  u32(element).length(count);
  for (std::uint64_t i = 0; i < count; ++i) canonical = append_value(static_cast<MetadataType>(element), canonical);
  return canonical;
}

GgufBytes& GgufBytes::entry(std::string_view key, const MetadataValue& value) {
  this->key(key, static_cast<std::uint32_t>(value.type));
  append_value(value.type, value.bytes);
  return *this;
}

GgufBytes& GgufBytes::tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                             std::uint64_t offset) {
  text(name).u32(static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) length(dim);
  return u32(type).u64(offset);
}

GgufBytes& GgufBytes::pad(std::uint64_t alignment) { return zeros(round_up(bytes_.size(), alignment) - bytes_.size()); }

GgufBuilder& GgufBuilder::set_alignment(std::uint32_t value) {
  alignment = value;
  metadata.push_back({"general.alignment", metadata_unsigned(MetadataType::kUint32, value)});
  return *this;
}

namespace {

// A number has no dimensions.
std::uint64_t columns_of(const std::vector<std::uint64_t>& dims) { return dims.empty() ? 1 : dims.front(); }

}  // namespace

GgufBuilder& GgufBuilder::add_tensor(std::string name, std::vector<std::uint64_t> dims, std::string type,
                                     unsigned char first) {
  std::uint64_t bytes = row_bytes(*types.find(type), columns_of(dims));
  for (std::size_t i = 1; i < dims.size(); ++i) bytes *= dims[i];
  std::string data(bytes, '\0');
  for (char& c : data) c = static_cast<char>(first++);
  tensors.push_back({std::move(name), std::move(dims), std::move(type), std::move(data)});
  return *this;
}

std::string GgufBuilder::build() const {
  GgufBytes out(version, big_endian);
  out.head(tensors.size(), metadata.size());
  for (const MetadataEntry& entry : metadata) out.entry(entry.key, entry.value);
  std::uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    out.tensor(tensor.name, tensor.dims, types.find(tensor.type)->id, offset);
    offset += round_up(tensor.data.size(), alignment);
  }
  out.pad(alignment);
  for (const TensorSpec& tensor : tensors) {
    std::string data = tensor.data;
    const auto bytes = std::as_writable_bytes(std::span(data));
    if (big_endian) swap_words(*types.find(tensor.type), columns_of(tensor.dims), bytes);
    out.raw(data).pad(alignment);
  }
  return out.bytes();
}

void GgufBuilder::write(const std::string& path) const { write_text(path, build()); }

std::vector<MetadataEntry> every_metadata_type() {
  using T = MetadataType;
  std::vector<MetadataEntry> entries;
  std::vector<MetadataValue> arrays;
  std::uint64_t pattern = 0xf1e2d3c4b5a69788;
  for (const T type : {T::kUint8, T::kInt8, T::kUint16, T::kInt16, T::kUint32, T::kInt32, T::kUint64, T::kInt64,
                       T::kFloat32, T::kFloat64, T::kBool, T::kString}) {
    const std::string name(metadata_type_name(type));
    MetadataValue value = metadata_unsigned(type, pattern);
    if (type == T::kBool) value = metadata_bool(true);
    if (type == T::kString) value = metadata_string("some text");
    const MetadataValue other = type == T::kString ? metadata_string("") : metadata_unsigned(type, 0);
    arrays.push_back(metadata_array(type, {value, other, value}));
    entries.push_back({"one." + name, value});
    entries.push_back({"some." + name, arrays.back()});
    entries.push_back({"none." + name, metadata_array(type, {})});
    pattern = pattern * 6364136223846793005ull + 1;
  }
  const MetadataValue inner = metadata_array(T::kArray, arrays);
  entries.push_back({"nested.array", metadata_array(T::kArray, {inner, metadata_array(T::kUint16, {}), inner})});
  return entries;
}

}  // namespace ggufmill
