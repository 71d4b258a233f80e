// The choice of levels with the covariance of inputs: GPTQ (Frantar and others, arXiv 2210.17323) in the form of
// Babai's nearest plane, which needs a factor of the covariance but not its inverse, and coordinate descent after it.
// Columns with a code book are chosen together. Scales and minimums are fixed before. The errors of products with given
// vectors show how good levels are.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "plugins/abi/ggufmill_covariance.h"
#include "plugins/reference/codebooks.h"
#include "plugins/reference/fp4_types.h"
#include "plugins/reference/iq2_formats.h"
#include "plugins/reference/iq3_formats.h"
#include "plugins/reference/iq4_types.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/points.h"
#include "plugins/reference/points_of_fp4.h"
#include "plugins/reference/simple_types.h"

namespace ggufmill::reference {
namespace {

constexpr std::uint64_t kMaxElements = 256;  // of a block
constexpr std::uint64_t kMinGroup = 16;
constexpr std::uint64_t kMaxTogether = 8;  // columns whose points depend on each other

// Q8_0 with the levels q + 128, so that they are not negative.
struct LevelsOfQ8_0 : Q8_0 {
  static constexpr int kGroup = 32, kMinLevel = 1, kMaxLevel = 255;
  static void levels(const Block& block, std::uint8_t* levels) {
    for (int i = 0; i < kGroup; ++i) levels[i] = static_cast<std::uint8_t>(block.qs[i] ^ 128);
  }
  static void put_levels(const std::uint8_t* levels, Block& block) {
    for (int i = 0; i < kGroup; ++i) block.qs[i] = static_cast<std::uint8_t>(levels[i] ^ 128);
  }
  static void lines(const Block& block, float* scales, float* offsets) {
    scales[0] = block.d.load();
    offsets[0] = -128 * scales[0];
  }
};

struct PointType {
  std::uint32_t id;
  PointAccess access;
};

template <class Codec>
PointType in_levels() {
  static_assert(Codec::kElements <= kMaxElements && Codec::kGroup >= kMinGroup);
  return {Codec::kTypeId, points_in_levels<Codec>()};
}

template <class Format>
PointType in_book() {
  static_assert(Format::kSubBlock >= kMinGroup && BookPoints<Format>::kDims <= kMaxTogether);
  return {Format::kTypeId, BookPoints<Format>::access()};
}

// Returns null if levels of the type are not chosen. Thread-safe; the first call builds the table.
const PointAccess* find_points(std::uint32_t type_id) {
  static const PointType types[] = {
      in_levels<Q4_0>(),          in_levels<Q4_1>(),          in_levels<Q5_0>(),       in_levels<Q5_1>(),
      in_levels<LevelsOfQ8_0>(),  in_levels<Q2_K>(),          in_levels<Q3_K>(),       in_levels<Q4_K>(),
      in_levels<Q5_K>(),          in_levels<Q6_K>(),          in_levels<Iq4Nl>(),      in_levels<Iq4Xs>(),
      in_levels<LevelsOfMxfp4>(), in_levels<LevelsOfNvfp4>(), in_book<Iq2XxsFormat>(), in_book<Iq2XsFormat>(),
      in_book<Iq2SFormat>(),      in_book<Iq3XxsFormat>(),    in_book<Iq3SFormat>(),
  };
  for (const PointType& type : types)
    if (type.id == type_id) return &type.access;
  return nullptr;
}

// Columns that are chosen together must be in one block of the metric.
bool suits(const PointAccess& type, const ggufmill_metric& metric) {
  return !type.book || metric.block >= metric.columns || metric.block % type.book->together() == 0;
}

namespace base {
#define GGUFMILL_LANES 4
#include "plugins/reference/covariance_lanes.h"
#undef GGUFMILL_LANES
}  // namespace base

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
namespace v3 {
#define GGUFMILL_LANES 8
#include "plugins/reference/covariance_lanes.h"
#undef GGUFMILL_LANES
}  // namespace v3
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
namespace v4 {
#define GGUFMILL_LANES 16
#include "plugins/reference/covariance_lanes.h"
#undef GGUFMILL_LANES
}  // namespace v4
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

constexpr ggufmill_covariance_kernels kCovariances[] = {
    {"reference", base::choose_levels, base::losses, base::update, base::diagonal, base::solve},
#if defined(__x86_64__)
    {"x86-64-v3", v3::choose_levels, v3::losses, v3::update, v3::diagonal, v3::solve},
    {"x86-64-v4", v4::choose_levels, v4::losses, v4::update, v4::diagonal, v4::solve},
#endif
};

}  // namespace
}  // namespace ggufmill::reference

extern "C" constinit const ggufmill_covariance_table ggufmill_reference_covariances = {
    sizeof ggufmill::reference::kCovariances / sizeof *ggufmill::reference::kCovariances,
    ggufmill::reference::kCovariances,
};
