#pragma once
// A double per lane, for searches whose sums are doubles.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

inline constexpr hn::Repartition<double, decltype(kFloats)> kDoubles{};
inline constexpr hn::Half<decltype(kFloats)> kHalfFloats{};

struct LaneDoubles {
  using Half = hn::Vec<decltype(kDoubles)>;
  Half low, high;

  friend LaneDoubles operator+(LaneDoubles a, LaneDoubles b) { return {a.low + b.low, a.high + b.high}; }
  friend LaneDoubles operator-(LaneDoubles a, LaneDoubles b) { return {a.low - b.low, a.high - b.high}; }
  friend LaneDoubles operator*(LaneDoubles a, LaneDoubles b) { return {a.low * b.low, a.high * b.high}; }
  friend LaneDoubles operator/(LaneDoubles a, LaneDoubles b) { return {a.low / b.low, a.high / b.high}; }
};

inline LaneDoubles doubles(double value) { return {hn::Set(kDoubles, value), hn::Set(kDoubles, value)}; }

inline LaneDoubles doubles_of(Floats values) {
  return {hn::PromoteTo(kDoubles, hn::LowerHalf(kHalfFloats, values)),
          hn::PromoteTo(kDoubles, hn::UpperHalf(kHalfFloats, values))};
}
// Rounds to floats.
inline Floats floats_of(LaneDoubles values) {
  return hn::Combine(kFloats, hn::DemoteTo(kHalfFloats, values.high), hn::DemoteTo(kHalfFloats, values.low));
}

// Converts a vector of floats in memory. This takes fewer operations than one in a register.
inline LaneDoubles load_doubles(const float* at) {
  return {hn::PromoteTo(kDoubles, hn::Load(kHalfFloats, at)),
          hn::PromoteTo(kDoubles, hn::Load(kHalfFloats, at + kLanes / 2))};
}
inline LaneDoubles load(const double* at) { return {hn::Load(kDoubles, at), hn::Load(kDoubles, at + kLanes / 2)}; }
inline void store(LaneDoubles values, double* at) {
  hn::Store(values.low, kDoubles, at);
  hn::Store(values.high, kDoubles, at + kLanes / 2);
}

// Returns a * b + sum for products that have no more bits than a double, so that it does not matter where the
// instruction set rounds.
inline LaneDoubles add_exact(LaneDoubles a, LaneDoubles b, LaneDoubles sum) {
  return {hn::MulAdd(a.low, b.low, sum.low), hn::MulAdd(a.high, b.high, sum.high)};
}

// Combines the masks of two halves.
inline Mask mask_of(hn::Mask<decltype(kDoubles)> low, hn::Mask<decltype(kDoubles)> high) {
#if HWY_TARGET == HWY_AVX3
  return Mask{static_cast<__mmask16>(low.raw | high.raw << 8)};
#else
  const auto lanes = [](hn::Mask<decltype(kDoubles)> mask) {
    return hn::BitCast(kFloats, hn::VecFromMask(kDoubles, mask));
  };
  return hn::MaskFromVec(hn::ConcatEven(kFloats, lanes(high), lanes(low)));
#endif
}
inline Mask operator<(LaneDoubles a, LaneDoubles b) { return mask_of(a.low < b.low, a.high < b.high); }
inline Mask operator>(LaneDoubles a, LaneDoubles b) { return b < a; }
inline Mask operator<=(LaneDoubles a, LaneDoubles b) { return mask_of(a.low <= b.low, a.high <= b.high); }

inline LaneDoubles choose(Mask mask, LaneDoubles yes, LaneDoubles no) {
#if HWY_TARGET == HWY_AVX3
  const hn::Mask<decltype(kDoubles)> low{static_cast<__mmask8>(mask.raw)}, high{static_cast<__mmask8>(mask.raw >> 8)};
#else
  constexpr hn::Repartition<std::int64_t, decltype(kFloats)> kLongs;
  constexpr hn::Half<decltype(kInts)> kHalfInts;
  const Ints lanes = as_ints(hn::VecFromMask(kFloats, mask));
  const auto wide = [&](auto half) { return hn::MaskFromVec(hn::BitCast(kDoubles, hn::PromoteTo(kLongs, half))); };
  const auto low = wide(hn::LowerHalf(kHalfInts, lanes)), high = wide(hn::UpperHalf(kHalfInts, lanes));
#endif
  return {hn::IfThenElse(low, yes.low, no.low), hn::IfThenElse(high, yes.high, no.high)};
}

}  // namespace ggufmill::simd
