#include "pipeline/graph/compare_piece.h"

#include <algorithm>

#include "pipeline/core/byte_order.h"
#include "pipeline/graph/run_kernel.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kAtOnce = 8 << 10;  // values: with what they are decoded from they stay in a core's cache

constexpr std::uint64_t kAlignment = 64;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Bytes of the values of one side that are decoded at a time.
std::uint64_t decoded_bytes(const ComparedWork& work) {
  return work.decodable ? aligned(std::max(kAtOnce, work.columns) * sizeof(float)) : 0;
}

// The next part of a piece's memory.
std::span<std::byte> take(std::span<std::byte>& memory, std::uint64_t bytes) {
  const std::span<std::byte> part = memory.first(bytes);
  memory = memory.subspan(aligned(bytes));
  return part;
}

// Reads the rows of one side, and brings them into the host's byte order.
Status read_rows(const ComparedSide& side, const ComparedPiece& piece, std::span<std::byte> into) {
  const TensorSource& source = side.tensor->source;
  BOOST_OUTCOME_TRY((*side.files)[source.file]->read(source.offset + piece.first_row * side.row_bytes, into));
  if (source.big_endian) swap_words(*source.type, into);
  return ok();
}

// Values of rows [first, first + rows) of a piece; decoded into `scratch` where they are not F32 already.
Result<std::span<const float>> values_of(const ComparedSide& side, std::span<const std::byte> bytes,
                                         std::uint64_t first, std::uint64_t rows, std::span<std::byte> scratch) {
  const std::uint64_t columns = side.tensor->shape.columns();
  const std::byte* from = bytes.data() + first * side.row_bytes;
  if (!side.decode.kernel) return std::span(reinterpret_cast<const float*>(from), rows * columns);
  auto* into = reinterpret_cast<float*>(scratch.data());
  BOOST_OUTCOME_TRY(run_kernel(side.decode, {from, into, rows, columns, nullptr}, side.tensor->name));
  return std::span<const float>(into, rows * columns);
}

Result<std::vector<float>> weights_of(const ComparedPiece& piece) {
  const Tensor& tensor = *piece.work->a.tensor;
  if (!tensor.importance) return std::vector<float>();
  return tensor.importance->weights(piece.first_row / tensor.shape.dims[1]);
}

}  // namespace

std::uint64_t ComparedWork::cost(std::uint64_t piece_rows) const {
  return aligned(piece_rows * a.row_bytes) + aligned(piece_rows * b.row_bytes) + 2 * decoded_bytes(*this);
}

Status compare_piece(const ComparedPiece& piece, std::span<std::byte> memory) {
  const ComparedWork& work = *piece.work;
  const std::span<std::byte> a = take(memory, piece.rows * work.a.row_bytes);
  const std::span<std::byte> b = take(memory, piece.rows * work.b.row_bytes);
  BOOST_OUTCOME_TRY(read_rows(work.a, piece, a));
  BOOST_OUTCOME_TRY(read_rows(work.b, piece, b));
  const bool same = work.a.tensor->source.type == work.b.tensor->source.type && std::ranges::equal(a, b);
  if (!same) *work.differs = true;
  if (!work.decodable) return ok();
  BOOST_OUTCOME_TRY(const auto weights, weights_of(piece));
  const std::span<std::byte> decoded_a = take(memory, decoded_bytes(work)),
                             decoded_b = take(memory, decoded_bytes(work));
  const std::uint64_t step = std::max<std::uint64_t>(kAtOnce / work.columns, 1);
  DifferenceSums sums;
  for (std::uint64_t row = 0; row < piece.rows; row += step) {
    const std::uint64_t rows = std::min(step, piece.rows - row);
    BOOST_OUTCOME_TRY(const auto of_a, values_of(work.a, a, row, rows, decoded_a));
    std::span<const float> of_b = of_a;
    if (!same) {
      BOOST_OUTCOME_TRY(of_b, values_of(work.b, b, row, rows, decoded_b));
    }
    sums.add_rows(of_a, of_b, work.columns, weights.empty() ? nullptr : weights.data());
  }
  work.measure->add_error(sums, piece.rows);
  return ok();
}

}  // namespace ggufmill
