#pragma once
// Encoders of llama.cpp's types, with the same results as those of plugins/ik/llama_types.h.

#include "plugins/ik/llama_types.h"
#include "plugins/simd/codec.h"
#include "plugins/simd/iq4_types.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/simple_types.h"

namespace ggufmill::simd {

// Types with minimums.
struct IkQ4_1 : Q4_1 {
  static constexpr int kSets = 2;
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct IkQ5_1 : Q5_1 {
  static constexpr int kSets = 2;
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct IkQ4_K : reference::Q4_K {
  static constexpr int kSets = 1;
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

struct IkQ5_K : reference::Q5_K {
  static constexpr int kSets = 1;
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

struct IkQ2_K : reference::Q2_K {
  static constexpr int kSets = 1;
  static std::int32_t encode_rows(const ggufmill_call* call);
  // Without importance, batch.row_mean_square has the greatest magnitudes of ternary rows, and -1 for other rows.
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

// Types without.
struct IkQ4_0 : Q4_0 {
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};
struct IkQ5_0 : Q5_0 {
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};
struct IkQ3_K : Q3_K {
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};
struct IkQ6_K : Q6_K {
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};
struct IkIq4Nl : Iq4Nl {
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};
struct IkIq4Xs : Iq4Xs {
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

inline constexpr std::array kIkAffineKernels = {
    ik::ik_encoder<IkQ4_1>(encode_rows<IkQ4_1>), ik::ik_encoder<IkQ5_1>(encode_rows<IkQ5_1>),
    ik::ik_encoder<IkQ2_K>(IkQ2_K::encode_rows), ik::ik_encoder<IkQ4_K>(encode_rows<IkQ4_K>),
    ik::ik_encoder<IkQ5_K>(encode_rows<IkQ5_K>),
};

inline constexpr std::array kIkScaledKernels = {
    ik::ik_encoder<IkQ4_0>(encode_rows<IkQ4_0>),   ik::ik_encoder<IkQ5_0>(encode_rows<IkQ5_0>),
    ik::ik_encoder<IkQ3_K>(encode_rows<IkQ3_K>),   ik::ik_encoder<IkQ6_K>(encode_rows<IkQ6_K>),
    ik::ik_encoder<IkIq4Nl>(encode_rows<IkIq4Nl>), ik::ik_encoder<IkIq4Xs>(encode_rows<IkIq4Xs>),
};

}  // namespace ggufmill::simd
