#include "stages/gguf/tensor_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"
#include "stages/gguf/format.h"

namespace ggufmill::gguf {
namespace {

constexpr std::uint64_t kMostElements = std::numeric_limits<std::int64_t>::max();

// Types that the format once had. Source: ggml, include/ggml.h.
struct RemovedType {
  TypeId id;
  std::string_view name;
};
constexpr RemovedType kRemovedTypes[] = {{4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
                                         {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};

Result<Shape> read_shape(ByteReader& in) {
  const std::uint64_t offset = in.position();
  Shape shape;
  BOOST_OUTCOME_TRY(shape.rank, in.u32());
  if (shape.rank > kMostDimensions)
    return in.error(offset, fmt::format("{} dimensions; at most {} are possible", shape.rank, kMostDimensions));
  std::uint64_t elements = 1;
  bool fits = true;
  for (std::uint32_t i = 0; i < shape.rank; ++i) {
    BOOST_OUTCOME_TRY(shape.dims[i], in.length());
    fits = fits && !__builtin_mul_overflow(elements, std::max<std::uint64_t>(1, shape.dims[i]), &elements) &&
           elements <= kMostElements;
  }
  if (!fits) return in.error(offset, fmt::format("{} are more than 2^63 - 1 elements", describe(shape)));
  return shape;
}

Error unknown_type(const ByteReader& in, std::uint64_t offset, TypeId id) {
  for (const RemovedType& removed : kRemovedTypes)
    if (removed.id == id)
      return in.error(offset, fmt::format("tensor type {} ({}) was removed from the format", id, removed.name),
                      "make the file again with a type of today");
  return in.error(offset, fmt::format("unknown tensor type {}", id),
                  "`ggufmill types` lists those that are known; a kernel module can bring more");
}

Result<const TypeInfo*> read_type(ByteReader& in) {
  const std::uint64_t offset = in.position();
  BOOST_OUTCOME_TRY(const TypeId id, in.u32());
  const TypeInfo* type = find_type(id);
  if (!type) return unknown_type(in, offset, id);
  if (in.encoding().big_endian && !can_swap(*type))
    return in.error(offset,
                    fmt::format("the file is big-endian, and how to swap the bytes of {} is not known", type->name));
  return type;
}

Result<std::uint64_t> source_bytes(const ByteReader& in, const TypeInfo& type, const Shape& shape,
                                   std::uint64_t offset) {
  if (shape.columns() % type.block_elements != 0)
    return in.error(offset, fmt::format("a row of {} elements is no multiple of the {} in a block of {}",
                                        shape.columns(), type.block_elements, type.name));
  const Result<std::uint64_t> bytes = bytes_of(type, shape.elements());
  if (!bytes) return in.error(offset, bytes.error().what);
  return bytes;
}

Result<DescribedTensor> read_tensor(ByteReader& in) {
  DescribedTensor described;
  described.described_at = in.position();
  Tensor& tensor = described.tensor;
  in.enter("the list of tensors");
  BOOST_OUTCOME_TRY(tensor.name, in.name("tensor name"));
  in.enter("the description of tensor", tensor.name);
  BOOST_OUTCOME_TRY(tensor.shape, read_shape(in));
  BOOST_OUTCOME_TRY(tensor.type, read_type(in));
  BOOST_OUTCOME_TRY(tensor.source.bytes, source_bytes(in, *tensor.type, tensor.shape, described.described_at));
  BOOST_OUTCOME_TRY(tensor.source.offset, in.u64());
  tensor.source.type = tensor.type;
  tensor.source.big_endian = in.encoding().big_endian;
  return described;
}

Error misplaced(const ByteReader& in, const DescribedTensor& described, std::string_view why) {
  return in.error(described.described_at,
                  fmt::format("the data of tensor {} {}", quoted_name(described.tensor.name), why));
}

Status place(const ByteReader& in, std::uint64_t data, std::uint64_t alignment, DescribedTensor& described) {
  TensorSource& source = described.tensor.source;
  if (source.offset % alignment != 0)
    return misplaced(in, described,
                     fmt::format("is at offset {}, no multiple of the alignment {}", source.offset, alignment));
  const std::uint64_t file = in.position() + in.remaining();
  if (data > file || source.offset > file - data || source.bytes > file - data - source.offset)
    return misplaced(in, described,
                     fmt::format("({} bytes at offset {} of the data, which begins at byte {:#x}) goes past "
                                 "the end of the file ({} bytes)",
                                 source.bytes, source.offset, data, file));
  source.offset += data;
  return ok();
}

// The order of their data; those without data left out.
std::vector<const DescribedTensor*> by_place(const std::vector<DescribedTensor>& tensors) {
  std::vector<const DescribedTensor*> order;
  order.reserve(tensors.size());
  for (const DescribedTensor& described : tensors)
    if (described.tensor.source.bytes != 0) order.push_back(&described);
  std::stable_sort(order.begin(), order.end(), [](const DescribedTensor* a, const DescribedTensor* b) {
    return a->tensor.source.offset < b->tensor.source.offset;
  });
  return order;
}

}  // namespace

Result<std::vector<DescribedTensor>> read_tensors(ByteReader& in, std::uint64_t count) {
  std::vector<DescribedTensor> tensors;
  for (std::uint64_t i = 0; i < count; ++i) {
    BOOST_OUTCOME_TRY(DescribedTensor described, read_tensor(in));
    tensors.push_back(std::move(described));
  }
  return tensors;
}

Status place_tensors(const ByteReader& in, std::uint64_t alignment, std::vector<DescribedTensor>& tensors) {
  const std::optional<std::uint64_t> data = padded(in.position(), alignment);
  if (!data) return in.error(in.position(), "the header goes past the largest file");
  for (DescribedTensor& described : tensors) {
    BOOST_OUTCOME_TRY(place(in, *data, alignment, described));
  }
  const std::vector<const DescribedTensor*> order = by_place(tensors);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorSource& before = order[i - 1]->tensor.source;
    if (before.offset + before.bytes > order[i]->tensor.source.offset)
      return misplaced(in, *order[i], "overlaps that of " + quoted_name(order[i - 1]->tensor.name));
  }
  return ok();
}

}  // namespace ggufmill::gguf
