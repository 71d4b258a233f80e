#include "pipeline/graph/slab.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/rows.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

std::uint32_t tile_count(const SlabRows& rows, const BoundStep& step) {
  const std::uint64_t per_tile = rows.rows == 0 ? kTileBytes : step.tile_rows;
  const std::uint64_t all = rows.rows == 0 ? rows.bytes : rows.rows;
  return static_cast<std::uint32_t>((all + per_tile - 1) / per_tile);
}

// Thrown if the memory of a slab is too small for its pieces; caught in make_slab().
struct TooLittle {
  std::uint64_t needed = 0;
};

// Hands out consecutive pieces of memory, each starting on a new page. Throws TooLittle if a piece, rounded up to whole
// pages, would exceed the memory.
class Pieces {
 public:
  Pieces(std::span<std::byte> memory, bool direct) : memory_(memory), direct_(direct) {}

  // `offset` is the position in the file that the piece is read from or written to. A piece for values of `type` is
  // aligned for them even if the file position is not; it is then not read with direct I/O.
  std::span<std::byte> take(std::uint64_t bytes, std::uint64_t offset, const TypeInfo* type = nullptr) {
    if (bytes == 0) return {};
    const bool as_in_file = direct_ && (!type || offset % type->alignment() == 0);
    const std::uint64_t start = capped_sum(used_, as_in_file ? offset % kDirectAlignment : 0);
    used_ = whole_pages(capped_sum(start, bytes));
    if (used_ > whole_pages(memory_.size())) throw TooLittle{used_};
    return memory_.subspan(start, bytes);
  }

 private:
  std::span<std::byte> memory_;
  bool direct_;
  std::uint64_t used_ = 0;
};

class SlabMaker {
 public:
  SlabMaker(const std::vector<BoundStep>& steps, ImportanceWeights& weights, bool direct)
      : steps_(steps), weights_(weights), direct_(direct) {}

  Result<std::unique_ptr<Slab>> make(const SlabBatch& batch, std::uint64_t ordinal) {
    slab_->ordinal = ordinal;
    slab_->cost = batch.cost;
    BOOST_OUTCOME_TRY(slab_->memory, Buffer::allocate(batch.cost));
    pieces_ = Pieces(slab_->memory.span(), direct_);
    slab_->parts.reserve(batch.rows.size());
    for (const SlabRows& rows : batch.rows)
      for (const Encoding& encoding : slab_->add_part(rows, steps_[rows.step]).step->step->encodings)
        slab_->writes_left += static_cast<std::uint32_t>(encoding.places.size());
    if (slab_->parts.size() > 1) read_side_by_side();
    for (SlabPart& part : slab_->parts) {
      for (const BufferLayout& buffer : part.step->layout->buffers()) take(part, buffer);
      find_weights(part);
    }
    slab_->tiles_left = slab_->tiles;
    slab_->reads_left = static_cast<std::uint32_t>(slab_->reads.size());
    return std::move(slab_);
  }

 private:
  // Reads small whole tensors together with the gaps between them.
  void read_side_by_side() {
    const auto extent_of = [](const SlabPart& part) { return part.values.expression->extent; };
    const Extent first = extent_of(slab_->parts.front()), last = extent_of(slab_->parts.back());
    const std::span<std::byte> all = pieces_.take(last.offset + last.bytes - first.offset, first.offset,
                                                  slab_->parts.front().values.expression->type);
    slab_->reads.push_back({first.source.get(), first.offset, all, true});
    for (SlabPart& part : slab_->parts) {
      part.values.is_read = true;
      part.values.bytes = all.subspan(extent_of(part).offset - first.offset, extent_of(part).bytes);
    }
  }

  void take(SlabPart& part, const BufferLayout& buffer) {
    const std::uint64_t bytes = buffer.bytes(part.rows.rows);
    switch (buffer.use) {
      case BufferLayout::kValues:
        if (part.values.bytes.empty()) read_values(part, part.values);
        break;
      case BufferLayout::kCompared:
        read_values(part, part.compared);
        break;
      case BufferLayout::kLongRows:
        part.long_rows = pieces_.take(bytes, 0);
        break;
      case BufferLayout::kMeasuredRows:
        part.measured_rows = pieces_.take(bytes, 0);
        break;
      case BufferLayout::kEncoded: {
        const std::vector<Place>& places = part.step->encodings[buffer.encoding].encoding->places;
        const std::uint64_t offset = places.empty() ? 0 : places.front().offset + part.offset_in_place(buffer.encoding);
        part.encoded[buffer.encoding] = pieces_.take(bytes, offset);
        break;
      }
      case BufferLayout::kPlainRows:
        part.plain[buffer.encoding] = pieces_.take(bytes, 0);
        break;
      case BufferLayout::kChosenRows:
        part.chosen_rows = pieces_.take(bytes, 0);
    }
  }

  void read_values(const SlabPart& part, PartValues& values) {
    const Expression& expression = *values.expression;
    if (const Extent* extent = expression.as_extent()) {
      const std::uint64_t row = expression.row_bytes();
      const bool copied = part.rows.rows == 0;
      const std::uint64_t first = copied ? part.rows.first_byte : part.rows.first_row * row;
      const std::uint64_t offset = extent->offset + first;
      values.is_read = true;
      values.bytes = pieces_.take(copied ? part.rows.bytes : part.rows.rows * row, offset, expression.type);
      slab_->reads.push_back({extent->source.get(), offset, values.bytes, true});
      return;
    }
    const Box box = box_of_rows(expression.shape, part.rows.first_row, part.rows.rows);
    values.read = ReadRanges(ranges_of(expression, box));
    values.read.set_memory(pieces_.take(values.read.bytes(), 0));
    for (std::size_t i = 0; i < values.read.ranges().size(); ++i)
      slab_->reads.push_back({values.read.ranges()[i].source, values.read.ranges()[i].offset, values.read.memory(i)});
    values.bytes = pieces_.take(part.rows.rows * expression.row_bytes(), 0);
  }

  void find_weights(SlabPart& part) {
    const std::uint64_t matrix =
        part.rows.first_row / std::max<std::uint64_t>(part.values.expression->shape.dims[1], 1);
    for (const auto& importance : part.step->importances) part.importance.push_back(read_weights(importance, matrix));
  }

  std::shared_ptr<MatrixWeights> read_weights(const std::shared_ptr<const Importance>& importance,
                                              std::uint64_t matrix) {
    ImportanceWeights::Found found = weights_.find(importance, matrix);
    if (!found.must_read) return found.weights;
    for (std::size_t i = 0; i < found.weights->ranges.size(); ++i) {
      read_numbers(found.weights->ranges[i].sums, found.weights->numbers[i].sums);
      read_numbers(found.weights->ranges[i].counts, found.weights->numbers[i].counts);
    }
    slab_->weights_read.push_back(found.weights);
    return found.weights;
  }

  void read_numbers(const Extent& extent, std::vector<float>& numbers) {
    if (extent.bytes != 0)
      slab_->reads.push_back({extent.source.get(), extent.offset, std::as_writable_bytes(std::span(numbers))});
  }

  const std::vector<BoundStep>& steps_;
  ImportanceWeights& weights_;
  const bool direct_;
  std::unique_ptr<Slab> slab_ = std::make_unique<Slab>();
  Pieces pieces_{{}, false};
};

}  // namespace

std::uint64_t SlabPart::offset_in_place(std::size_t index) const {
  const BoundEncoding& encoding = step->encodings[index];
  return encoding.layout->work == Work::kCopy ? rows.first_byte : rows.first_row * encoding.layout->row_bytes;
}

std::span<const std::byte> SlabPart::encoded_bytes(std::size_t index) const {
  return step->encodings[index].layout->work == Work::kCopy ? values.bytes : encoded[index];
}

std::uint64_t SlabPart::checksum(const Unit& unit, std::size_t index) const {
  const Expression& expression = *step->step->expression;
  const std::uint64_t first_byte = rows.first_byte - unit.first_row * expression.row_bytes();
  if (rows.rows == 0) {
    const std::uint64_t piece = copied_piece_bytes(expression);
    return ggufmill::checksum(encoded_bytes(index), piece, first_byte / piece);
  }
  return ggufmill::checksum(encoded_bytes(index), step->encodings[index].layout->row_bytes,
                            rows.first_row - unit.first_row);
}

SlabPart& Slab::add_part(const SlabRows& rows, const BoundStep& step) {
  SlabPart& part = parts.emplace_back();
  part.rows = rows;
  part.step = &step;
  part.values.expression = step.step->expression.get();
  part.compared.expression = step.step->compared.get();
  part.encoded.resize(step.encodings.size());
  part.plain.resize(step.encodings.size());
  part.first_tile = tiles;
  part.tiles = tile_count(rows, step);
  tiles += part.tiles;
  return part;
}

SlabPart& Slab::part_of(std::uint32_t tile) {
  const auto after = std::upper_bound(parts.begin(), parts.end(), tile,
                                      [](std::uint32_t t, const SlabPart& part) { return t < part.first_tile; });
  return *std::find_if(std::make_reverse_iterator(after), parts.rend(),
                       [](const SlabPart& part) { return part.tiles != 0; });
}

Result<std::unique_ptr<Slab>> make_slab(const SlabBatch& batch, std::uint64_t ordinal,
                                        const std::vector<BoundStep>& steps, ImportanceWeights& weights,
                                        bool direct) try {
  return SlabMaker(steps, weights, direct).make(batch, ordinal);
} catch (const TooLittle& memory) {
  const Step& step = *steps[batch.rows.front().step].step;
  return Error{ExitCode::kInternal, "",
               fmt::format("tensor {} needs at least {} bytes for a slab that was planned with {}",
                           quoted_name(step.name), memory.needed, batch.cost),
               "nothing was written", "please report this bug; a smaller limits.memory may avoid it"};
}

}  // namespace ggufmill
