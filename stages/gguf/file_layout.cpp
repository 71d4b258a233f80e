#include "stages/gguf/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"
#include "stages/gguf/byte_reader.h"
#include "stages/gguf/format.h"

namespace ggufmill::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are swapped for big-endian files alone");

// Builds a header in the byte order of its file.
class HeaderText {
 public:
  explicit HeaderText(bool big_endian) : big_endian_(big_endian), out_(kMagic) {}

  template <class T>
  void add_number(T number) {
    std::string bytes(reinterpret_cast<const char*>(&number), sizeof number);
    if (big_endian_) std::reverse(bytes.begin(), bytes.end());
    out_ += bytes;
  }
  void add_text(std::string_view text) {
    add_number<std::uint64_t>(text.size());
    out_ += text;
  }
  void add_value(const MetadataValue& value) {
    add_number(static_cast<std::uint32_t>(value.type));
    std::string_view bytes = value.bytes;
    if (big_endian_)
      add_values(value.type, 1, bytes);
    else
      out_ += bytes;
  }
  void add_tensor(const Tensor& tensor, std::uint64_t offset) {
    add_text(tensor.name);
    const std::uint32_t rank = std::max<std::uint32_t>(1, tensor.shape().rank);
    add_number(rank);
    for (std::uint32_t i = 0; i < rank; ++i) add_number(tensor.shape().dims[i]);
    add_number(tensor.type->id);
    add_number(offset);
  }
  std::string take() { return std::move(out_); }

 private:
  // Appends `count` values in order, which are little-endian in `bytes`, and removes them from it. Recursion is limited
  // because readers and stages limit the nesting of arrays.
  void add_values(MetadataType type, std::uint64_t count, std::string_view& bytes) {
    if (const std::size_t width = metadata_type_bytes(type); width != 0) {
      std::string swapped(bytes.substr(0, width * count));
      swap_words(width, std::as_writable_bytes(std::span(swapped)));
      bytes.remove_prefix(swapped.size());
      out_ += swapped;
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (type == MetadataType::kString) {
        const auto size = taken<std::uint64_t>(bytes);
        add_text(bytes.substr(0, size));
        bytes.remove_prefix(size);
        continue;
      }
      const auto element = taken<std::uint32_t>(bytes);
      const auto items = taken<std::uint64_t>(bytes);
      add_number(element);
      add_number(items);
      add_values(static_cast<MetadataType>(element), items, bytes);
    }
  }

  template <class T>
  static T taken(std::string_view& bytes) {
    T number;
    std::memcpy(&number, bytes.data(), sizeof number);
    bytes.remove_prefix(sizeof number);
    return number;
  }

  bool big_endian_;
  std::string out_;
};

Status check_name(std::string_view what, std::string_view name) {
  std::string problem = name_problem(name);
  if (name.size() > kMaxNameLength) problem = fmt::format("is longer than {} bytes", kMaxNameLength);
  if (problem.empty()) return ok();
  return usage_error(fmt::format("{} {} {}", what, quoted_name(name), problem));
}

Result<std::string> make_header(const Model& model, const FileContent& content,
                                const std::vector<std::uint64_t>& offsets) {
  HeaderText out(content.big_endian);
  out.add_number(kNewestVersion);
  out.add_number<std::uint64_t>(content.last - content.first);
  out.add_number<std::uint64_t>(content.metadata.size());
  for (const MetadataEntry* entry : content.metadata) {
    BOOST_OUTCOME_TRY(check_name("metadata key", entry->key));
    out.add_text(entry->key);
    out.add_value(entry->value);
  }
  for (std::size_t i = content.first; i < content.last; ++i) {
    BOOST_OUTCOME_TRY(check_name("tensor", model.tensors[i].name));
    out.add_tensor(model.tensors[i], offsets[i - content.first]);
  }
  return out.take();
}

Status check_byte_order(const Tensor& tensor, bool big_endian) {
  if (!big_endian || can_swap(*tensor.type)) return ok();
  return usage_error(fmt::format("tensor {} cannot be written big-endian: byte swapping of {} is not supported",
                                 quoted_name(tensor.name), tensor.type->name),
                     "choose another type for this tensor");
}

Error too_large(const FileContent& content) {
  return usage_error(fmt::format("the output {} would be larger than 2^63 bytes", quoted_name(content.path)));
}

}  // namespace

Result<std::uint64_t> tensor_bytes(const Tensor& tensor) {
  if (is_source_type(*tensor.type))
    return usage_error(
        fmt::format("tensor {} is {}, a type that GGUF does not support", quoted_name(tensor.name), tensor.type->name),
        "choose another type: quantize: {tensors: [{match: ..., type: F32}]}");
  if (tensor.shape().columns() % tensor.type->block_elements != 0)
    return usage_error(fmt::format(
        "tensor {} cannot be {}: its rows of {} elements are not a multiple of the block size {}",
        quoted_name(tensor.name), tensor.type->name, tensor.shape().columns(), tensor.type->block_elements));
  Result<std::uint64_t> bytes = bytes_of(*tensor.type, tensor.shape());
  if (!bytes) return usage_error(fmt::format("tensor {}: {}", quoted_name(tensor.name), bytes.error().what));
  return bytes;
}

Result<OutputFile> lay_out_file(const Model& model, const FileContent& content, std::uint64_t alignment) {
  OutputFile file;
  file.path = content.path;
  file.big_endian = content.big_endian;
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;  // size of the data laid out so far
  for (std::size_t i = content.first; i < content.last; ++i) {
    BOOST_OUTCOME_TRY(check_byte_order(model.tensors[i], content.big_endian));
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, tensor_bytes(model.tensors[i]));
    file.tensors.push_back({i, end, bytes});
    offsets.push_back(end);
    const auto size = padded(bytes, alignment);
    if (!size || *size > static_cast<std::uint64_t>(INT64_MAX) - end) return too_large(content);
    end += *size;
  }
  BOOST_OUTCOME_TRY(file.header, make_header(model, content, offsets));
  if (!content.is_bare) file.header.resize(*padded(file.header.size(), alignment));
  if (end > static_cast<std::uint64_t>(INT64_MAX) - file.header.size()) return too_large(content);
  for (Placement& place : file.tensors) place.offset += file.header.size();
  file.bytes = file.header.size() + end;
  return file;
}

}  // namespace ggufmill::gguf
