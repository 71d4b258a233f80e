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

Error wrong(const ByteReader& in, std::uint64_t offset, std::string_view name, std::string_view what,
            std::string help = {}) {
  return in.error(offset, fmt::format("tensor {} {}", quoted_name(name), what), std::move(help));
}

Result<Shape> read_shape(ByteReader& in, std::string_view name) {
  const std::uint64_t offset = in.position();
  Shape shape;
  BOOST_OUTCOME_TRY(shape.rank, in.u32());
  if (shape.rank > kMostDimensions)
    return wrong(in, offset, name, fmt::format("has {} dimensions; {} are possible", shape.rank, kMostDimensions));
  std::uint64_t elements = 1;
  bool fits = true;
  for (std::uint32_t i = 0; i < shape.rank; ++i) {
    BOOST_OUTCOME_TRY(shape.dims[i], in.length());
    fits = fits && !__builtin_mul_overflow(elements, std::max<std::uint64_t>(1, shape.dims[i]), &elements) &&
           elements <= kMostElements;
  }
  if (!fits)
    return wrong(in, offset, name, fmt::format("has the shape {}: more than 2^63 - 1 elements", describe(shape)));
  return without_last_ones(shape);
}

Error unknown_type(const ByteReader& in, std::uint64_t offset, std::string_view name, TypeId id) {
  for (const RemovedType& removed : kRemovedTypes)
    if (removed.id == id)
      return wrong(in, offset, name,
                   fmt::format("is of type {} ({}), which was removed from the format", id, removed.name),
                   "make the file again with a current type");
  return wrong(in, offset, name, fmt::format("is of unknown type {}", id),
               "`ggufmill types` lists the known ones; a kernel module can bring more");
}

Result<const TypeInfo*> read_type(ByteReader& in, std::string_view name, const Types& types) {
  const std::uint64_t offset = in.position();
  BOOST_OUTCOME_TRY(const TypeId id, in.u32());
  const TypeInfo* type = types.find(id);
  if (!type) return unknown_type(in, offset, name, id);
  if (in.encoding().big_endian && !can_swap(*type))
    return wrong(in, offset, name,
                 fmt::format("is big-endian, and how the bytes of {} are swapped is not known", type->name));
  return type;
}

Result<std::uint64_t> source_bytes(const ByteReader& in, const DescribedTensor& tensor) {
  const TypeInfo& type = *tensor.type;
  if (tensor.shape.columns() % type.block_elements != 0)
    return wrong(in, tensor.described_at, tensor.name,
                 fmt::format("has rows of {} elements, not a multiple of the {} in a block of {}",
                             tensor.shape.columns(), type.block_elements, type.name));
  Result<std::uint64_t> bytes = bytes_of(type, tensor.shape.elements());
  if (!bytes) return wrong(in, tensor.described_at, tensor.name, "is too large: " + bytes.error().what);
  return bytes;
}

Result<DescribedTensor> read_tensor(ByteReader& in, const Types& types) {
  DescribedTensor tensor;
  tensor.described_at = in.position();
  BOOST_OUTCOME_TRY(tensor.name, in.name("tensor name"));
  BOOST_OUTCOME_TRY(tensor.shape, read_shape(in, tensor.name));
  BOOST_OUTCOME_TRY(tensor.type, read_type(in, tensor.name, types));
  BOOST_OUTCOME_TRY(tensor.data.bytes, source_bytes(in, tensor));
  BOOST_OUTCOME_TRY(tensor.data.offset, in.u64());
  tensor.data.big_endian = in.encoding().big_endian;
  return tensor;
}

Status place(const ByteReader& in, std::uint64_t data, std::uint64_t alignment, DescribedTensor& tensor) {
  const std::uint64_t offset = tensor.data.offset, file = in.position() + in.remaining();
  if (offset % alignment != 0)
    return wrong(in, tensor.described_at, tensor.name,
                 fmt::format("lies at offset {}, not a multiple of the alignment {}", offset, alignment));
  if (data > file || offset > file - data || tensor.data.bytes > file - data - offset)
    return wrong(
        in, tensor.described_at, tensor.name,
        fmt::format("has {} bytes at offset {} of the data, past the end of the file", tensor.data.bytes, offset),
        "the file is damaged or cut short: copy or download it again");
  tensor.data.offset += data;
  return ok();
}

// The order of their data; those without data left out.
std::vector<const DescribedTensor*> by_place(const std::vector<DescribedTensor>& tensors) {
  std::vector<const DescribedTensor*> order;
  order.reserve(tensors.size());
  for (const DescribedTensor& described : tensors)
    if (described.data.bytes != 0) order.push_back(&described);
  std::stable_sort(order.begin(), order.end(),
                   [](const DescribedTensor* a, const DescribedTensor* b) { return a->data.offset < b->data.offset; });
  return order;
}

}  // namespace

Result<std::vector<DescribedTensor>> read_tensors(ByteReader& in, std::uint64_t count, const Types& types) {
  std::vector<DescribedTensor> tensors;
  in.enter("the list of tensors");
  for (std::uint64_t i = 0; i < count; ++i) {
    BOOST_OUTCOME_TRY(DescribedTensor described, read_tensor(in, types));
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
    const Extent& before = order[i - 1]->data;
    if (before.offset + before.bytes > order[i]->data.offset)
      return wrong(in, order[i]->described_at, order[i]->name, "overlaps tensor " + quoted_name(order[i - 1]->name));
  }
  return ok();
}

}  // namespace ggufmill::gguf
