#pragma once
// Turns codecs into kernels of the ABI. A codec derives from its reference codec (plugins/reference/codec.h), which
// describes the type, and adds its own functions that produce the same bytes. It has
//
//   static void decode(const Block* block, std::uint64_t count, float* x);  // `count` consecutive blocks
//
// The encoder has one of the following forms. If it has no sums, or their order does not matter:
//
//   static void encode(const float* x, Block& block);                 // one block, no importance
//   static bool encode_four(const float* x, Block* blocks);           // optional: four, or none if it returns false
//
// With one block per lane, and kSets batches of kLanes blocks in flight:
//
//   static constexpr int kSets;
//   static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);  // kSets elements in `blocks`
//
// If it writes complete blocks itself and can fail, with a status like that of reference::LatticeCodec:
//
//   static constexpr int kSets;
//   static std::int32_t encode(const Batch<kSets>& batch, Block* block, std::size_t count);  // the first `count`
//
// A codec can also have both encode(x, block) and encode_weighted(batch, blocks), the latter for calls with importance.
// A codec whose `kWeighsRows` is true receives the mean squares of the rows.

#include <array>
#include <concepts>

#include "plugins/abi/ggufmill_kernels.h"
#include "plugins/simd/lane_blocks.h"

namespace ggufmill::simd {

template <class Codec>
concept EncodesOneBlock = requires(const float* x, typename Codec::Block& block) {
  Codec::encode(x, block);
};

template <class Codec>
concept EncodesFourBlocks = requires(const float* x, typename Codec::Block* blocks) {
  Codec::encode_four(x, blocks);
};

template <class Codec>
concept WeighsWholeRows = requires {
  requires Codec::kWeighsRows;
};

template <class Codec>
concept FillsBlocks = requires(const Batch<Codec::kSets>& batch, typename Codec::Block* block) {
  Codec::encode(batch, block, std::size_t{});
};

template <class Codec>
int32_t decode_rows(const ggufmill_call* call) {
  const auto* block = static_cast<const typename Codec::Block*>(call->src);
  auto* x = static_cast<float*>(call->dst);
  Codec::decode(block, call->rows * (call->cols / Codec::kElements), x);
  return GGUFMILL_OK;
}

template <class Codec>
int32_t encode_each(const ggufmill_call* call) {
  const auto* x = static_cast<const float*>(call->src);
  auto* block = static_cast<typename Codec::Block*>(call->dst);
  const std::uint64_t blocks = call->rows * (call->cols / Codec::kElements);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    if constexpr (EncodesFourBlocks<Codec>) {
      if (blocks - i >= 4 && Codec::encode_four(x + i * Codec::kElements, block + i)) {
        i += 3;
        continue;
      }
    }
    Codec::encode(x + i * Codec::kElements, block[i]);
  }
  return GGUFMILL_OK;
}

// Computes the mean squares of kLanes rows, each summed in element order. cols must be a multiple of 4.
inline void mean_squares(const float* const* rows, std::uint64_t cols, float* means) {
  Floats sum = floats(0);
  for (std::uint64_t at = 0; at < cols; at += 4) {
    Floats a = load_parts(kFloats, rows, at);
    Floats b = load_parts(kFloats, rows + 1, at);
    Floats c = load_parts(kFloats, rows + 2, at);
    Floats d = load_parts(kFloats, rows + 3, at);
    transpose_parts(a, b, c, d);
    sum = sum + a * a;
    sum = sum + b * b;
    sum = sum + c * c;
    sum = sum + d * d;
  }
  hn::StoreU(sum / floats(static_cast<float>(cols)), kFloats, means);
}

// Encodes the first `count` blocks of a batch.
template <class Codec>
int32_t encode_batch(const Batch<Codec::kSets>& batch, typename Codec::Block* block, std::uint64_t count) {
  if constexpr (FillsBlocks<Codec>) {
    return Codec::encode(batch, block, count);
  } else {
    LaneBlocks<typename Codec::Block> packed[Codec::kSets];
    if constexpr (EncodesOneBlock<Codec>)
      Codec::encode_weighted(batch, packed);
    else
      Codec::encode(batch, packed);
    for (std::uint64_t set = 0; set < Codec::kSets && set * kLanes < count; ++set)
      packed[set].store(reinterpret_cast<std::uint8_t*>(block + set * kLanes),
                        std::min<std::uint64_t>(kLanes, count - set * kLanes));
    return GGUFMILL_OK;
  }
}

// Encodes the blocks of several rows as one stream, a batch at a time. `means` are the mean squares of the rows
// or other numbers that the codec computes for them, or null.
template <class Codec>
int32_t encode_stream(const ggufmill_call& call, std::uint64_t first_row, std::uint64_t rows, const float* means) {
  using Block = typename Codec::Block;
  constexpr std::uint64_t kBlocks = Batch<Codec::kSets>::kBlocks;
  const std::uint64_t blocks_a_row = call.cols / Codec::kElements;
  const std::uint64_t blocks = rows * blocks_a_row;
  const float* x = static_cast<const float*>(call.src) + first_row * call.cols;
  Block* block = static_cast<Block*>(call.dst) + first_row * blocks_a_row;
  Batch<Codec::kSets> batch{};
  batch.weighted = call.importance != nullptr;
  std::uint64_t row = 0, column = 0;  // position of the next block, in blocks
  for (std::uint64_t done = 0; done < blocks; done += kBlocks) {
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      batch.x[i] = x + (row * blocks_a_row + column) * Codec::kElements;
      if (batch.weighted) batch.importance[i] = call.importance + column * Codec::kElements;
      if (means) batch.row_mean_square[i] = means[row];
      if (done + i + 1 >= blocks) continue;
      if (++column == blocks_a_row) column = 0, ++row;
    }
    const std::uint64_t count = std::min(kBlocks, blocks - done);
    batch.sets = static_cast<int>((count + kLanes - 1) / kLanes);
    const int32_t status = encode_batch<Codec>(batch, block + done, count);
    if (status != GGUFMILL_OK) return status;
  }
  return GGUFMILL_OK;
}

// Encodes kLanes rows at a time, after computing their mean squares.
template <class Codec>
void encode_weighing_rows(const ggufmill_call& call) {
  const auto* x = static_cast<const float*>(call.src);
  for (std::uint64_t first = 0; first < call.rows; first += kLanes) {
    const float* rows[kLanes];
    for (std::uint64_t i = 0; i < kLanes; ++i) rows[i] = x + std::min(first + i, call.rows - 1) * call.cols;
    float means[kLanes];
    mean_squares(rows, call.cols, means);
    encode_stream<Codec>(call, first, std::min<std::uint64_t>(kLanes, call.rows - first), means);
  }
}

template <class Codec>
int32_t encode_rows(const ggufmill_call* call) {
  if constexpr (EncodesOneBlock<Codec>) {
    if (!call->importance) return encode_each<Codec>(call);
  }
  if constexpr (WeighsWholeRows<Codec>) {
    if (call->importance) {
      encode_weighing_rows<Codec>(*call);
      return GGUFMILL_OK;
    }
  }
  if constexpr (requires { Codec::kSets; }) return encode_stream<Codec>(*call, 0, call->rows, nullptr);
  return GGUFMILL_OK;
}

template <class Codec>
constexpr ggufmill_kernel kernel_of(std::uint32_t operation, std::uint32_t flags, ggufmill_run run) {
  static_assert(alignof(typename Codec::Block) == 1);
  ggufmill_kernel kernel = reference::plain_kernel(operation, Codec::kTypeId, Codec::kElements,
                                                   sizeof(typename Codec::Block), Codec::kName, run);
  kernel.flags = flags;
  reference::describe_fields<Codec>(kernel);
  return kernel;
}

// Returns a decoder and an encoder for each codec.
template <class... Codecs>
constexpr std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> kernels_of() {
  std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> kernels{};
  std::size_t count = 0;
  ((kernels[count++] = simd::kernel_of<Codecs>(GGUFMILL_DECODE, 0, decode_rows<Codecs>),
    kernels[count++] = simd::kernel_of<Codecs>(GGUFMILL_ENCODE, Codecs::kFlags, encode_rows<Codecs>)),
   ...);
  return kernels;
}

}  // namespace ggufmill::simd
