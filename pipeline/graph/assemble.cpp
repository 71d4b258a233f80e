#include "pipeline/graph/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "pipeline/core/byte_order.h"
#include "pipeline/graph/finite.h"

namespace ggufmill {
namespace {

// Columns computed at a time: whole blocks of every type, and few enough to stay in a cache.
constexpr std::uint64_t kColumnsAtOnce = 4096;

// Copies `count` contiguous blocks to locations `step` bytes apart.
void scatter(const std::byte* from, std::uint64_t count, std::size_t block_bytes, std::byte* into, std::uint64_t step) {
  if (step == block_bytes) {
    std::memcpy(into, from, count * block_bytes);
    return;
  }
  const auto copy = [&](auto word) {
    for (std::uint64_t i = 0; i < count; ++i) std::memcpy(into + i * step, from + i * sizeof word, sizeof word);
  };
  switch (block_bytes) {  // with a constant size, memcpy is a move instead of a call
    case 1:
      return copy(std::uint8_t{});
    case 2:
      return copy(std::uint16_t{});
    case 4:
      return copy(std::uint32_t{});
    case 8:
      return copy(std::uint64_t{});
    default:
      for (std::uint64_t i = 0; i < count; ++i) std::memcpy(into + i * step, from + i * block_bytes, block_bytes);
  }
}

class Assembler {
 public:
  Assembler(const ReadRanges& read, const Kernels& kernels, const std::string& tensor)
      : read_(read), kernels_(kernels), tensor_(tensor) {}

  Status put(const Expression& expression, const Box& box, std::byte* into, const Layout& layout) {
    Status status = ok();
    for_each_part(expression, box, layout, [&](const Expression& node, const Box& part, const Layout& place) {
      if (status) status = put_part(node, part, into, place);
    });
    return status;
  }

 private:
  Status put_part(const Expression& node, const Box& box, std::byte* into, const Layout& layout) {
    if (node.operation == Operation::kExtent) return put_extent(node, box, into, layout), ok();
    if (node.operation == Operation::kConstant) return put_constant(node, box, into, layout), ok();
    return put_computed(node, box, into, layout);
  }

  void put_extent(const Expression& node, const Box& box, std::byte* into, const Layout& layout) {
    const TypeInfo& type = *node.type;
    const std::uint64_t blocks = box.count[0] / type.block_elements;
    for_each_run(node, box, [&](std::uint64_t offset, std::uint64_t bytes, std::array<std::uint64_t, 4> at) {
      const std::byte* from = read_.find(*node.extent.source, node.extent.offset + offset, hint_);
      // A run may span several rows, which need not be adjacent at the destination.
      for (std::uint64_t row = 0; row < bytes; row += blocks * type.block_bytes) {
        std::byte* place = into + layout.offset;
        for (std::uint32_t d = 1; d < 4; ++d) place += at[d] * layout.step[d];
        put_row(type, from + row, blocks, place, layout.step[0], node.extent.big_endian);
        for (std::uint32_t d = 1; d < 4 && ++at[d] == box.count[d]; ++d) at[d] = 0;
      }
    });
  }

  void put_row(const TypeInfo& type, const std::byte* from, std::uint64_t blocks, std::byte* into, std::uint64_t step,
               bool swap) {
    if (!swap) return scatter(from, blocks, type.block_bytes, into, step);
    swapped_.assign(from, from + blocks * type.block_bytes);
    swap_words(type, swapped_);
    scatter(swapped_.data(), blocks, type.block_bytes, into, step);
  }

  static void put_constant(const Expression& node, const Box& box, std::byte* into, const Layout& layout) {
    for_each_row(box, [&](const std::array<std::uint64_t, 4>& at) {
      std::uint64_t element = box.first[0], size = node.shape.dims[0];
      std::byte* place = into + layout.offset;
      for (std::uint32_t d = 1; d < 4; ++d) {
        element += (box.first[d] + at[d]) * size;
        size *= node.shape.dims[d];
        place += at[d] * layout.step[d];
      }
      const auto* from = reinterpret_cast<const std::byte*>(node.values.data() + element);
      scatter(from, box.count[0], sizeof(float), place, layout.step[0]);
    });
  }

  // Computes row by row, some columns at a time. The inputs are assembled in buffers of that size, however long the row
  // is.
  Status put_computed(const Expression& node, const Box& box, std::byte* into, const Layout& layout) {
    const std::uint64_t block = node.type->block_elements, bytes = node.type->block_bytes;
    const bool scatters = layout.step[0] != bytes;  // otherwise, columns are computed in place
    std::vector<std::byte> buffer(scatters ? kColumnsAtOnce / block * bytes : 0);
    Status status = ok();
    for_each_row(box, [&](const std::array<std::uint64_t, 4>& at) {
      std::byte* place = into + layout.offset;
      Box part = box;
      for (std::uint32_t d = 1; d < 4; ++d) {
        part.first[d] += at[d];
        part.count[d] = 1;
        place += at[d] * layout.step[d];
      }
      for (std::uint64_t done = 0; done < box.count[0] && status; done += part.count[0]) {
        part.first[0] = box.first[0] + done;
        // Stops at a multiple of kColumnsAtOnce, so that no block of an input is processed twice.
        const std::uint64_t end = (part.first[0] / kColumnsAtOnce + 1) * kColumnsAtOnce;
        part.count[0] = std::min(end - part.first[0], box.count[0] - done);
        std::byte* const columns = place + done / block * layout.step[0];
        status = compute(node, part, scatters ? buffer.data() : columns);
        if (status && scatters) scatter(buffer.data(), part.count[0] / block, bytes, columns, layout.step[0]);
      }
    });
    return status;
  }

  // Columns of a row of an input: in the memory they were read into, or assembled in `own`.
  struct Columns {
    std::vector<std::byte> own;
    const std::byte* data = nullptr;
    const float* values() const { return reinterpret_cast<const float*>(data); }
  };

  Status find(const Expression& input, const Box& box, Columns& columns) {
    if (const Extent* extent = input.as_extent(); extent && !extent->big_endian) {
      // A single run, which kernels can read directly if it is aligned for elements.
      for_each_run(input, box, [&](std::uint64_t offset, std::uint64_t, const std::array<std::uint64_t, 4>&) {
        columns.data = read_.find(*extent->source, extent->offset + offset, hint_);
      });
      const std::size_t alignment = input.type->block_elements == 1 ? input.type->block_bytes : alignof(float);
      if (reinterpret_cast<std::uintptr_t>(columns.data) % alignment == 0) return ok();
    }
    columns.own.resize(box.count[0] / input.type->block_elements * input.type->block_bytes);
    columns.data = columns.own.data();
    return put(input, box, columns.own.data(), packed_layout(*input.type, box));
  }

  // Computes part of one row, at most kColumnsAtOnce columns.
  Status compute(const Expression& node, const Box& part, std::byte* result) {
    const std::vector<Box> boxes = input_boxes(node, part);
    std::vector<Columns> inputs(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      BOOST_OUTCOME_TRY(find(*node.inputs[i], boxes[i], inputs[i]));
    }
    if (node.operation == Operation::kCast) return cast(node, part, boxes[0], inputs[0].data, result);
    if (node.operation == Operation::kRepack) {
      const std::byte* const both[2] = {inputs[0].data, inputs[1].data};
      node.repack->apply(part.count[0] / node.type->block_elements, both, result);
      return ok();
    }
    if (node.operation == Operation::kGather) return gather(node, part, inputs, result);
    const float* const values = inputs[0].values();
    auto* const results = reinterpret_cast<float*>(result);
    if (node.operation == Operation::kMap) {
      for (std::uint64_t i = 0; i < part.count[0]; ++i) results[i] = node.map->apply(values[i], node.parameter);
      return ok();
    }
    const float* const scales = inputs[1].values();
    const float* const offsets = inputs.size() > 2 ? inputs[2].values() : nullptr;
    for (std::uint64_t i = 0, block = 0; i < part.count[0]; ++block) {
      const std::uint64_t end =
          std::min((boxes[1].first[0] + block + 1) * node.block[0] - part.first[0], part.count[0]);
      const float scale = scales[block], offset = offsets ? offsets[block] : 0;
      for (; i < end; ++i) results[i] = (values[i] - offset) * scale;
    }
    return ok();
  }

  // `inputs`: a row of values, and the column numbers to take.
  Status gather(const Expression& node, const Box& part, const std::vector<Columns>& inputs, std::byte* result) const {
    const std::uint64_t columns = node.inputs[0]->shape.columns(), bytes = node.type->block_bytes;
    for (std::uint64_t i = 0; i < part.count[0]; ++i) {
      std::int32_t column = 0;
      std::memcpy(&column, inputs[1].data + i * sizeof column, sizeof column);
      if (column < 0 || static_cast<std::uint64_t>(column) >= columns)
        return Error{ExitCode::kBadInput, "",
                     fmt::format("tensor '{}': column {} takes entry {} of a table of {}", tensor_, part.first[0] + i,
                                 column, columns),
                     "nothing was written", "the file is damaged, or was changed while it was read"};
      std::memcpy(result + i * bytes, inputs[0].data + static_cast<std::uint64_t>(column) * bytes, bytes);
    }
    return ok();
  }

  // `wide`: the box of the input, which may have additional columns on both sides.
  Status cast(const Expression& node, const Box& part, const Box& wide, const std::byte* input, std::byte* result) {
    const TypeInfo &from = *node.inputs[0]->type, &to = *node.type;
    const bool whole = to.is_f32() && wide.count[0] == part.count[0];  // decoded directly to the result
    std::vector<float> decoded(from.is_f32() || whole ? 0 : wide.count[0]);
    const float* values = reinterpret_cast<const float*>(input);
    if (!from.is_f32()) {
      float* const place = whole ? reinterpret_cast<float*>(result) : decoded.data();
      BOOST_OUTCOME_TRY(run_kernel(*kernels_.decode(from.id), {input, place, 1, wide.count[0], nullptr}, tensor_));
      if (whole) return ok();
      values = place;
    }
    values += part.first[0] - wide.first[0];
    if (to.is_f32()) {
      std::memcpy(result, values, part.count[0] * sizeof(float));
      return ok();
    }
    BOOST_OUTCOME_TRY(run_kernel(*kernels_.encode(to.id), {values, result, 1, part.count[0], nullptr}, tensor_));
    return check_range(node, part, values, result);
  }

  // Finds values that were finite and no longer are. Infinity and NaN in the input are left to the code that uses the
  // result.
  Status check_range(const Expression& node, const Box& part, const float* values, const std::byte* result) const {
    const TypeInfo& type = *node.type;
    const std::size_t blocks = part.count[0] / type.block_elements, bad = first_bad_block(type, result, blocks);
    if (bad == blocks) return ok();
    const std::size_t first = bad * type.block_elements;
    if (first_not_finite({values + first, type.block_elements}) != type.block_elements) return ok();
    return Error{ExitCode::kBadInput, "",
                 fmt::format("tensor '{}', row {}, column {}: a value is too large for {}", tensor_,
                             part.first[1] + node.shape.dims[1] * (part.first[2] + node.shape.dims[2] * part.first[3]),
                             part.first[0] + first, type.name),
                 "nothing was written", "choose a type with a greater range, such as BF16 or F32"};
  }

  template <class F>
  static void for_each_row(const Box& box, const F& f) {
    std::array<std::uint64_t, 4> at{};
    for (at[3] = 0; at[3] < box.count[3]; ++at[3])
      for (at[2] = 0; at[2] < box.count[2]; ++at[2])
        for (at[1] = 0; at[1] < box.count[1]; ++at[1]) f(at);
  }

  const ReadRanges& read_;
  const Kernels& kernels_;
  const std::string& tensor_;
  std::size_t hint_ = 0;
  std::vector<std::byte> swapped_;
};

}  // namespace

ReadRanges::ReadRanges(std::vector<ByteRange> ranges) : ranges_(std::move(ranges)) {
  starts_.reserve(ranges_.size() + 1);
  for (const ByteRange& range : ranges_) {
    starts_.push_back(starts_.back() + range.bytes);
    if (order_.empty() || order_.back() != range.source) order_.push_back(range.source);
  }
}

std::span<std::byte> ReadRanges::memory(std::size_t index) const {
  return memory_.subspan(starts_[index], ranges_[index].bytes);
}

const std::byte* ReadRanges::find(const SourceFile& source, std::uint64_t offset, std::size_t& hint) const {
  const auto holds = [&](std::size_t i) {
    return i < ranges_.size() && ranges_[i].source == &source && offset >= ranges_[i].offset &&
           offset - ranges_[i].offset < ranges_[i].bytes;
  };
  if (!holds(hint) && !holds(++hint)) {
    const auto number = std::ranges::find(order_, &source) - order_.begin();
    const auto after = std::partition_point(ranges_.begin(), ranges_.end(), [&](const ByteRange& range) {
      const auto other = std::ranges::find(order_, range.source) - order_.begin();
      return other < number || (other == number && range.offset <= offset);
    });
    hint = static_cast<std::size_t>(after - ranges_.begin()) - 1;
  }
  return memory_.data() + starts_[hint] + (offset - ranges_[hint].offset);
}

Status assemble(const Expression& expression, const Box& box, const ReadRanges& read, const Kernels& kernels,
                const std::string& tensor, std::span<std::byte> into) {
  return Assembler(read, kernels, tensor).put(expression, box, into.data(), packed_layout(*expression.type, box));
}

Status run_kernel(const KernelChoice& choice, const ggufmill_call& call, const std::string& tensor) {
  const std::int32_t status = choice.kernel->run(&call);
  if (status == GGUFMILL_OK) return ok();
  if (status == GGUFMILL_CANNOT_REPRESENT)
    return Error{ExitCode::kBadInput, "",
                 fmt::format("tensor '{}': values are too large for {}", tensor, choice.kernel->name),
                 "nothing was written", "choose a type with a greater range for this tensor, such as BF16 or F32"};
  return Error{ExitCode::kInternal, "",
               fmt::format("tensor '{}': kernel {} of module '{}' failed with status {}", tensor, choice.kernel->name,
                           choice.module->name, status),
               "", ""};
}

}  // namespace ggufmill
