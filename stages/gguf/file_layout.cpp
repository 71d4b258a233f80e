#include "stages/gguf/file_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "pipeline/core/text.h"
#include "stages/gguf/byte_reader.h"
#include "stages/gguf/format.h"

namespace ggufmill::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are in memory");

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_string(std::string& out, std::string_view text) {
  append_number<std::uint64_t>(out, text.size());
  out.append(text);
}

// As the reference: dimensions of 1 at the end are left out, and there is one at least.
std::uint32_t written_rank(const Shape& shape) {
  std::uint32_t rank = std::max<std::uint32_t>(1, shape.rank);
  while (rank > 1 && shape.dims[rank - 1] == 1) --rank;
  return rank;
}

void append_tensor(std::string& out, const Tensor& tensor, std::uint64_t offset) {
  append_string(out, tensor.name);
  const std::uint32_t rank = written_rank(tensor.shape());
  append_number(out, rank);
  for (std::uint32_t i = 0; i < rank; ++i) append_number(out, tensor.shape().dims[i]);
  append_number(out, tensor.type->id);
  append_number(out, offset);
}

Status check_name(std::string_view what, std::string_view name) {
  std::string problem = name_problem(name);
  if (name.size() > kLongestName) problem = fmt::format("is longer than {} bytes", kLongestName);
  if (problem.empty()) return ok();
  return usage_error(fmt::format("{} {} {}", what, quoted_name(name), problem));
}

Result<std::string> make_header(const Model& model, const FileContent& content,
                                const std::vector<std::uint64_t>& offsets) {
  std::string out(kMagic);
  append_number(out, kNewestVersion);
  append_number<std::uint64_t>(out, content.last - content.first);
  append_number<std::uint64_t>(out, content.metadata.size());
  for (const MetadataEntry* entry : content.metadata) {
    BOOST_OUTCOME_TRY(check_name("metadata key", entry->key));
    append_string(out, entry->key);
    append_number(out, static_cast<std::uint32_t>(entry->value.type));
    out += entry->value.bytes;
  }
  for (std::size_t i = content.first; i < content.last; ++i) {
    BOOST_OUTCOME_TRY(check_name("tensor", model.tensors[i].name));
    append_tensor(out, model.tensors[i], offsets[i - content.first]);
  }
  return out;
}

Error too_large(const FileContent& content) {
  return usage_error(fmt::format("the output {} would be larger than 2^63 bytes", quoted_name(content.path)));
}

}  // namespace

Result<std::uint64_t> tensor_bytes(const Tensor& tensor) {
  if (tensor.shape().columns() % tensor.type->block_elements != 0)
    return usage_error(fmt::format(
        "tensor {} cannot be {}: its rows of {} elements are not a multiple of the {} of a block",
        quoted_name(tensor.name), tensor.type->name, tensor.shape().columns(), tensor.type->block_elements));
  Result<std::uint64_t> bytes = bytes_of(*tensor.type, tensor.shape().elements());
  if (!bytes) return usage_error(fmt::format("tensor {}: {}", quoted_name(tensor.name), bytes.error().what));
  return bytes;
}

Result<OutputFile> lay_out_file(const Model& model, const FileContent& content, std::uint64_t alignment) {
  OutputFile file;
  file.path = content.path;
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;  // of the data so far, from its start
  for (std::size_t i = content.first; i < content.last; ++i) {
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, tensor_bytes(model.tensors[i]));
    file.tensors.push_back({i, end, bytes});
    offsets.push_back(end);
    const auto size = padded(bytes, alignment);
    if (!size || *size > static_cast<std::uint64_t>(INT64_MAX) - end) return too_large(content);
    end += *size;
  }
  BOOST_OUTCOME_TRY(file.header, make_header(model, content, offsets));
  file.header.resize(*padded(file.header.size(), alignment));
  if (end > static_cast<std::uint64_t>(INT64_MAX) - file.header.size()) return too_large(content);
  for (Placement& place : file.tensors) place.offset += file.header.size();
  file.bytes = file.header.size() + end;
  return file;
}

}  // namespace ggufmill::gguf
