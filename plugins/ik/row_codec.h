#pragma once
// Turns codecs of types whose rows have a header into kernels of the ABI. Such a codec converts one row:
//
//   struct IQ4_KS {
//     static constexpr std::uint32_t kTypeId, kElements, kFlags;        // as in plugins/reference/codec.h
//     static constexpr const char* kName;
//     static constexpr ggufmill_field kFields[] = ...;
//     using Header = ...;                                               // bytes only
//     using Block = ...;                                                // bytes only
//     static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
//     // `importance` has one weight for each value, or is null; without flags, it is always null.
//     static void encode_row(const float* x, const float* importance, Header& header, Block* blocks,
//                            std::uint64_t count);
//   };
//
// An encode_row() that can fail returns a status as std::int32_t; a status other than GGUFMILL_OK ends the call.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plugins/reference/codec.h"

namespace ggufmill::ik {

template <class Codec>
int32_t decode_rows(const ggufmill_call* call) {
  using Header = typename Codec::Header;
  using Block = typename Codec::Block;
  const std::uint64_t count = call->cols / Codec::kElements, bytes = sizeof(Header) + count * sizeof(Block);
  const auto* row = static_cast<const std::byte*>(call->src);
  auto* x = static_cast<float*>(call->dst);
  for (std::uint64_t i = 0; i < call->rows; ++i, row += bytes, x += call->cols)
    Codec::decode_row(*reinterpret_cast<const Header*>(row), reinterpret_cast<const Block*>(row + sizeof(Header)),
                      count, x);
  return GGUFMILL_OK;
}

template <class Codec>
int32_t encode_rows(const ggufmill_call* call) {
  using Header = typename Codec::Header;
  using Block = typename Codec::Block;
  const std::uint64_t count = call->cols / Codec::kElements, bytes = sizeof(Header) + count * sizeof(Block);
  const auto* x = static_cast<const float*>(call->src);
  auto* row = static_cast<std::byte*>(call->dst);
  for (std::uint64_t i = 0; i < call->rows; ++i, row += bytes, x += call->cols) {
    auto& header = *reinterpret_cast<Header*>(row);
    auto* const blocks = reinterpret_cast<Block*>(row + sizeof(Header));
    if constexpr (std::is_void_v<decltype(Codec::encode_row(x, x, header, blocks, count))>)
      Codec::encode_row(x, call->importance, header, blocks, count);
    else if (const std::int32_t status = Codec::encode_row(x, call->importance, header, blocks, count);
             status != GGUFMILL_OK)
      return status;
  }
  return GGUFMILL_OK;
}

template <class Codec>
constexpr ggufmill_kernel row_kernel_of(std::uint32_t operation, std::uint32_t flags, ggufmill_run run) {
  static_assert(alignof(typename Codec::Block) == 1 && alignof(typename Codec::Header) == 1);
  ggufmill_kernel kernel = reference::plain_kernel(operation, Codec::kTypeId, Codec::kElements,
                                                   sizeof(typename Codec::Block), Codec::kName, run);
  kernel.flags = flags;
  kernel.row_header_bytes = sizeof(typename Codec::Header);
  reference::describe_fields<Codec>(kernel);
  return kernel;
}

// Returns a decoder and an encoder for each codec.
template <class... Codecs>
constexpr std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> row_kernels_of() {
  std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> kernels{};
  std::size_t count = 0;
  ((kernels[count++] = row_kernel_of<Codecs>(GGUFMILL_DECODE, 0, decode_rows<Codecs>),
    kernels[count++] = row_kernel_of<Codecs>(GGUFMILL_ENCODE, Codecs::kFlags, encode_rows<Codecs>)),
   ...);
  return kernels;
}

}  // namespace ggufmill::ik
