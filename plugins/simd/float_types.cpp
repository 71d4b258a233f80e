#include "plugins/simd/float_types.h"

#include <cstring>

#include "plugins/reference/floats.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {
namespace {

constexpr hn::Rebind<std::uint16_t, decltype(kFloats)> kShorts{};

// Row boundaries do not matter for these types, so one loop covers all elements. `wide` converts kLanes elements,
// `narrow` converts one.
template <class From, class To, class Wide, class Narrow>
int32_t convert(const ggufmill_call* call, const Wide& wide, const Narrow& narrow) {
  const auto* from = static_cast<const From*>(call->src);
  auto* to = static_cast<To*>(call->dst);
  const std::uint64_t count = call->rows * call->cols;
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) wide(from + i, to + i);
  for (; i < count; ++i) to[i] = narrow(from[i]);
  return GGUFMILL_OK;
}

Floats load_half(const std::uint16_t* from) {
#if HWY_TARGET <= HWY_AVX2
  const hn::Rebind<hwy::float16_t, decltype(kFloats)> halves{};
  return hn::PromoteTo(kFloats, hn::BitCast(halves, hn::LoadU(kShorts, from)));
#else
  return half_to_floats(hn::PromoteTo(kWords, hn::LoadU(kShorts, from)));
#endif
}

// Stores the lower half of each word.
void store_shorts(Words value, std::uint16_t* to) { hn::StoreU(hn::TruncateTo(kShorts, value), kShorts, to); }

void store_half(Floats value, std::uint16_t* to) {
#if HWY_TARGET <= HWY_AVX2
  // The instruction keeps bits of a NaN that the specification drops.
  if (HWY_LIKELY(!any(is_nan(value)))) {
    const hn::Rebind<hwy::float16_t, decltype(kFloats)> halves{};
    hn::StoreU(hn::BitCast(kShorts, hn::DemoteTo(halves, value)), kShorts, to);
    return;
  }
#endif
  store_shorts(floats_to_half(value), to);
}

Words floats_to_bfloat(Floats value) {
  const Words bits = as_words(value);
  const Words odd = hn::ShiftRight<16>(bits) & words(1);
  const Words rounded = hn::ShiftRight<16>(bits + words(0x7fff) + odd);
  const Words quiet = hn::ShiftRight<16>(bits) | words(0x40);
  return choose(is_nan(value), quiet, rounded);
}

}  // namespace

int32_t copy_f32(const ggufmill_call* call) {
  std::memcpy(call->dst, call->src, call->rows * call->cols * sizeof(float));
  return GGUFMILL_OK;
}

int32_t decode_f16(const ggufmill_call* call) {
  const auto wide = [](const std::uint16_t* from, float* to) { hn::StoreU(load_half(from), kFloats, to); };
  return convert<std::uint16_t, float>(call, wide, reference::half_to_float);
}

int32_t encode_f16(const ggufmill_call* call) {
  const auto wide = [](const float* from, std::uint16_t* to) { store_half(hn::LoadU(kFloats, from), to); };
  return convert<float, std::uint16_t>(call, wide, reference::float_to_half);
}

int32_t decode_bf16(const ggufmill_call* call) {
  const auto wide = [](const std::uint16_t* from, float* to) {
    const Words bits = hn::PromoteTo(kWords, hn::LoadU(kShorts, from));
    hn::StoreU(as_floats(hn::ShiftLeft<16>(bits)), kFloats, to);
  };
  return convert<std::uint16_t, float>(call, wide, reference::bfloat_to_float);
}

int32_t encode_bf16(const ggufmill_call* call) {
  const auto wide = [](const float* from, std::uint16_t* to) {
    store_shorts(floats_to_bfloat(hn::LoadU(kFloats, from)), to);
  };
  return convert<float, std::uint16_t>(call, wide, reference::float_to_bfloat);
}

int32_t decode_f64(const ggufmill_call* call) {
  const hn::ScalableTag<double> doubles{};
  const hn::Rebind<float, decltype(doubles)> singles{};
  constexpr std::size_t kStep = hn::MaxLanes(doubles);
  const auto* from = static_cast<const double*>(call->src);
  auto* to = static_cast<float*>(call->dst);
  const std::uint64_t count = call->rows * call->cols;
  std::uint64_t i = 0;
  GGUFMILL_UNROLL4
  for (; i + kStep <= count; i += kStep)
    hn::StoreU(hn::DemoteTo(singles, hn::LoadU(doubles, from + i)), singles, to + i);
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::simd
