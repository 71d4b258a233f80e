#pragma once
// Kernels of IQ1_KT to IQ4_KT, with the same results as plugins/ik/kt_types.cpp.

#include "plugins/ik/kt_types.h"

namespace ggufmill::simd {

struct IQ1_KT : ik::IQ1_KT {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};
struct IQ2_KT : ik::IQ2_KT {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};
struct IQ3_KT : ik::IQ3_KT {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};
struct IQ4_KT : ik::IQ4_KT {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

inline constexpr auto kIkKtKernels = ik::row_kernels_of<IQ1_KT, IQ2_KT, IQ3_KT, IQ4_KT>();

}  // namespace ggufmill::simd
