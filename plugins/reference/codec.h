#pragma once
// Turns codecs into kernels of the ABI. A codec is a class that describes one tensor type and converts one block of it:
//
//   struct Q8_0 {
//     static constexpr std::uint32_t kTypeId, kElements, kFlags;        // kFlags: GGUFMILL_*_IMPORTANCE, or 0
//     static constexpr const char* kName;
//     using Block = ...;                                                // bytes only, so its alignment is 1
//     static void decode(const Block& block, float* x);                 // writes kElements values
//     static void encode(const float* x, [const float* importance,] Block& block);  // reads kElements values
//   };
//
// The `importance` parameter is present if kFlags is not 0. It points to kElements weights, one per column of the
// block, or is null. A codec whose weights depend on the whole row uses encode(x, block) for calls without importance,
// and additionally has
//
//     static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
//
// An encode(x, importance, block) that can fail returns a status as std::int32_t; a status other than GGUFMILL_OK ends
// the call.
//
// A codec of a type that the program does not know itself also describes its words and scales:
//
//     static constexpr ggufmill_field kFields[] = {{GGUFMILL_SCALE_F16, GGUFMILL_IN_BLOCK, 0, 1}, ...};
//
// kernels_of<Codec...>() builds the kernels. The header of each type family keeps them in a constexpr array, and
// module.cpp concatenates these arrays.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::reference {

template <class Codec>
concept WeighsWholeRows = requires(const float* x, typename Codec::Block& block) {
  Codec::encode_weighted(x, x, 0.0f, block);
};

template <class Codec>
concept CanFail = requires(const float* x, typename Codec::Block& block) {
  { Codec::encode(x, x, block) } -> std::same_as<std::int32_t>;
};

template <class Codec>
int32_t decode_rows(const ggufmill_call* call) {
  const auto* block = static_cast<const typename Codec::Block*>(call->src);
  auto* x = static_cast<float*>(call->dst);
  const std::uint64_t blocks = call->rows * (call->cols / Codec::kElements);
  for (std::uint64_t i = 0; i < blocks; ++i) Codec::decode(block[i], x + i * Codec::kElements);
  return GGUFMILL_OK;
}

// Returns the mean square of one row, summed in element order.
inline float mean_square(const float* x, std::uint64_t cols) {
  float sum = 0;
  for (std::uint64_t i = 0; i < cols; ++i) sum += x[i] * x[i];
  return sum / static_cast<float>(cols);
}

template <class Codec>
int32_t encode_row(const float* x, std::uint64_t cols, const float* importance, typename Codec::Block* block) {
  [[maybe_unused]] float row_mean_square = 0;
  if constexpr (WeighsWholeRows<Codec>) row_mean_square = importance ? mean_square(x, cols) : 0.0f;
  for (std::uint64_t at = 0; at < cols; at += Codec::kElements, ++block) {
    [[maybe_unused]] const float* weights = importance ? importance + at : nullptr;
    if constexpr (WeighsWholeRows<Codec>) {
      if (weights)
        Codec::encode_weighted(x + at, weights, row_mean_square, *block);
      else
        Codec::encode(x + at, *block);
    } else if constexpr (CanFail<Codec>) {
      if (const std::int32_t status = Codec::encode(x + at, weights, *block); status != GGUFMILL_OK) return status;
    } else if constexpr (Codec::kFlags != 0) {
      Codec::encode(x + at, weights, *block);
    } else {
      Codec::encode(x + at, *block);
    }
  }
  return GGUFMILL_OK;
}

template <class Codec>
int32_t encode_rows(const ggufmill_call* call) {
  const auto* x = static_cast<const float*>(call->src);
  auto* block = static_cast<typename Codec::Block*>(call->dst);
  const std::uint64_t blocks_a_row = call->cols / Codec::kElements;
  int32_t status = GGUFMILL_OK;
  for (std::uint64_t row = 0; row < call->rows && status == GGUFMILL_OK; ++row)
    status = encode_row<Codec>(x + row * call->cols, call->cols, call->importance, block + row * blocks_a_row);
  return status;
}

// Returns a kernel without flags, and an encoder that is its type's default one.
constexpr ggufmill_kernel plain_kernel(std::uint32_t operation, std::uint32_t type_id, std::uint32_t elements,
                                       std::uint32_t bytes, const char* name, ggufmill_run run) {
  return {operation, type_id, elements, bytes, 0, 0, name, run, nullptr, nullptr, 0, 0};
}

template <class Codec>
constexpr void describe_fields(ggufmill_kernel& kernel) {
  if constexpr (requires { Codec::kFields; }) {
    kernel.fields = Codec::kFields;
    kernel.field_count = sizeof Codec::kFields / sizeof Codec::kFields[0];
  }
}

template <class Codec>
constexpr ggufmill_kernel kernel_of(std::uint32_t operation, std::uint32_t flags, ggufmill_run run) {
  static_assert(alignof(typename Codec::Block) == 1);
  ggufmill_kernel kernel =
      plain_kernel(operation, Codec::kTypeId, Codec::kElements, sizeof(typename Codec::Block), Codec::kName, run);
  kernel.flags = flags;
  describe_fields<Codec>(kernel);
  return kernel;
}

// Returns a decoder and an encoder for each codec.
template <class... Codecs>
constexpr std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> kernels_of() {
  std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> kernels{};
  std::size_t count = 0;
  ((kernels[count++] = kernel_of<Codecs>(GGUFMILL_DECODE, 0, decode_rows<Codecs>),
    kernels[count++] = kernel_of<Codecs>(GGUFMILL_ENCODE, Codecs::kFlags, encode_rows<Codecs>)),
   ...);
  return kernels;
}

}  // namespace ggufmill::reference
