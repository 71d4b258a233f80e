#pragma once
// Vectors of 32-bit lanes, as wide as the instruction set of the module allows, and the bit-level arithmetic of
// plugins/reference/floats.h on all lanes, with the same results for every argument.
//
// Usually, each lane contains one block of weights, so that it repeats the scalar order of operations. Never use
// hn::MulAdd to compute output bytes: if the instruction set supports it, it rounds once, whereas the specification
// rounds twice. The exception are exact products (add_exact() in lane_doubles.h).

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

// Placed before a short loop over vectors in flight. The loop is unrolled early, so that the vectors stay in registers.
// GGUFMILL_UNROLL4 is for a long loop with so little work that its speed would depend on its address.
// GGUFMILL_ROLLED stands before the loop around it where the compiler would unroll that as well, and run out of
// registers.
#if defined(__clang__)
#define GGUFMILL_UNROLL _Pragma("unroll")
#define GGUFMILL_UNROLL16 _Pragma("unroll")
#define GGUFMILL_UNROLL4 _Pragma("unroll 4")
#define GGUFMILL_ROLLED _Pragma("nounroll")
#else
#define GGUFMILL_UNROLL _Pragma("GCC unroll 8")
#define GGUFMILL_UNROLL16 _Pragma("GCC unroll 16")
#define GGUFMILL_UNROLL4 _Pragma("GCC unroll 4")
#define GGUFMILL_ROLLED _Pragma("GCC unroll 1")
#endif

namespace ggufmill::simd {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr hn::ScalableTag<float> kFloats{};
inline constexpr hn::ScalableTag<std::int32_t> kInts{};
inline constexpr hn::ScalableTag<std::uint32_t> kWords{};

using Floats = hn::Vec<decltype(kFloats)>;
using Ints = hn::Vec<decltype(kInts)>;
using Words = hn::Vec<decltype(kWords)>;
using Mask = hn::Mask<decltype(kFloats)>;

inline constexpr std::size_t kLanes = hn::MaxLanes(kFloats);
static_assert(kLanes == GGUFMILL_SIMD_LANES, "Highway chose another target than the module's instruction set");

inline Floats floats(float value) { return hn::Set(kFloats, value); }
inline Ints ints(std::int32_t value) { return hn::Set(kInts, value); }
inline Words words(std::uint32_t value) { return hn::Set(kWords, value); }

inline Floats as_floats(Words bits) { return hn::BitCast(kFloats, bits); }
inline Words as_words(Floats value) { return hn::BitCast(kWords, value); }
inline Words as_words(Ints value) { return hn::BitCast(kWords, value); }
inline Ints as_ints(Floats value) { return hn::BitCast(kInts, value); }
inline Ints as_ints(Words value) { return hn::BitCast(kInts, value); }
inline Floats to_floats(Ints value) { return hn::ConvertTo(kFloats, value); }

inline Mask mask_of(hn::Mask<decltype(kInts)> mask) { return hn::RebindMask(kFloats, mask); }
inline Mask mask_of(hn::Mask<decltype(kWords)> mask) { return hn::RebindMask(kFloats, mask); }
inline bool any(Mask mask) { return !hn::AllFalse(kFloats, mask); }
inline bool all(Mask mask) { return hn::AllTrue(kFloats, mask); }

// Return the mask as bits; bit l is lane l. `d` is the tag of its vectors.
template <class D>
HWY_INLINE std::uint64_t mask_bits(D d, hn::Mask<D> mask) {
  std::uint8_t bytes[8];
  hn::StoreMaskBits(d, mask, bytes);
  hwy::UnsignedFromSize<(hn::MaxLanes(d) + 7) / 8> bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}
HWY_INLINE unsigned mask_bits(Mask mask) { return static_cast<unsigned>(mask_bits(kFloats, mask)); }

inline Floats choose(Mask mask, Floats yes, Floats no) { return hn::IfThenElse(mask, yes, no); }
inline Ints choose(Mask mask, Ints yes, Ints no) { return hn::IfThenElse(hn::RebindMask(kInts, mask), yes, no); }
inline Words choose(Mask mask, Words yes, Words no) { return hn::IfThenElse(hn::RebindMask(kWords, mask), yes, no); }
// Returns true where a and b differ or either is NaN, as in C++. Highway's operator does not do so for all targets.
inline Mask differ(Floats a, Floats b) { return hn::Not(a == b); }
inline Mask is_nan(Floats value) { return differ(value, value); }

// Returns `yes`, or zero where the mask is not set.
inline Floats or_zero(Mask mask, Floats yes) { return hn::IfThenElseZero(mask, yes); }
// Returns 1 / value, or 0 where it is 0.
inline Floats inverse_of(Floats value) { return or_zero(differ(value, floats(0)), floats(1) / value); }

// Compute a > b and a != b, respectively, and only where the mask is set. This is a single operation if masks are not
// vectors.
inline Mask and_greater(Mask mask, Floats a, Floats b) {
#if HWY_TARGET == HWY_AVX3
  return Mask{_mm512_mask_cmp_ps_mask(mask.raw, a.raw, b.raw, _CMP_GT_OQ)};
#else
  return hn::And(mask, a > b);
#endif
}
inline Mask and_differ(Mask mask, Floats a, Floats b) {
#if HWY_TARGET == HWY_AVX3
  return Mask{_mm512_mask_cmp_ps_mask(mask.raw, a.raw, b.raw, _CMP_NEQ_UQ)};
#else
  return hn::AndNot(a == b, mask);
#endif
}

// Return a < b ? a : b and a > b ? a : b, respectively, even if both are zero or one is NaN. The x86 instructions are
// defined this way.
#if HWY_ARCH_X86
inline Floats lesser(Floats a, Floats b) { return hn::Min(a, b); }
inline Floats greater(Floats a, Floats b) { return hn::Max(a, b); }
#else
inline Floats lesser(Floats a, Floats b) { return choose(a < b, a, b); }
inline Floats greater(Floats a, Floats b) { return choose(a > b, a, b); }
#endif

// Truncates toward zero. Returns INT32_MIN if the value does not fit or is NaN. Highway's own conversion saturates.
inline Ints to_ints(Floats value) {
#if HWY_TARGET == HWY_AVX3
  return Ints{_mm512_cvttps_epi32(value.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Ints{_mm256_cvttps_epi32(value.raw)};
#elif HWY_ARCH_X86
  return Ints{_mm_cvttps_epi32(value.raw)};
#else
  const Mask fits = hn::And(value >= floats(-0x1p31f), value < floats(0x1p31f));
  return choose(fits, hn::ConvertTo(kInts, value), ints(INT32_MIN));
#endif
}

// Rounds to nearest, ties to even. The result is unspecified if the value does not fit or is NaN.
inline Ints round_to_ints(Floats value) {
#if HWY_TARGET == HWY_AVX3
  return Ints{_mm512_cvtps_epi32(value.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Ints{_mm256_cvtps_epi32(value.raw)};
#elif HWY_ARCH_X86
  return Ints{_mm_cvtps_epi32(value.raw)};
#else
  return hn::NearestInt(value);
#endif
}

// Rounds to nearest, ties to even, with an addition that leaves no fraction bits. Outside +-4194303, the result is made
// of the low bits of the sum, as in reference::nearest_int. Within this range, hn::Round gives the same result and is
// cheaper.
inline Ints nearest_ints(Floats value) {
  const Words bits = as_words(value + floats(12582912.0f));
  return as_ints(bits & words(0x007fffff)) - ints(0x00400000);
}

// Below this magnitude, hn::Round(value) and round_to_ints(value) are equal to nearest_int(value).
inline constexpr float kRoundable = 4194303.0f;

// Prepares rounding to nearest, ties away from zero, by to_ints(), which truncates the result. The constant is the
// greatest value below one half, so that no fraction below one half is rounded up.
inline Floats before_truncation(Floats value) {
  const Floats sign = as_floats(as_words(value) & words(0x80000000u));
  return value + hn::Or(sign, floats(0x1.fffffep-2f));
}

inline Ints clamp(Ints value, int low, int high) { return hn::Min(hn::Max(value, ints(low)), ints(high)); }
// For integral values: not_negative() replaces values below 0 by 0, and at_most() replaces values above kHigh by kHigh.
// The bits of non-negative floats order like integers, and integer minimum and maximum leave the multiplication units
// free.
inline Floats not_negative(Floats value) { return hn::BitCast(kFloats, hn::Max(as_ints(value), ints(0))); }
template <int kHigh>
Floats at_most(Floats value) {
  return hn::BitCast(kFloats, hn::Min(as_ints(value), hn::BitCast(kInts, floats(float{kHigh}))));
}

// Converts an IEEE half in the lower half of each word to float, exactly, like reference::half_to_float.
inline Floats half_to_floats(Words half) {
  const Words sign = hn::ShiftLeft<16>(half & words(0x8000));
  const Words magnitude = half & words(0x7fff);
  // Treats the exponent as if its bias were 127. The exact multiplication corrects this, and subnormals with it.
  const Floats finite = as_floats(hn::ShiftLeft<13>(magnitude)) * floats(0x1p112f);
  const Words quiet = choose(mask_of(magnitude > words(0x7c00)), words(0x7fc00000), words(0x7f800000));
  const Words special = hn::ShiftLeft<13>(magnitude) | quiet;
  return as_floats(sign | choose(mask_of(magnitude > words(0x7bff)), special, as_words(finite)));
}

// Converts a float to an IEEE half in the lower half of each word, like reference::float_to_half.
inline Words floats_to_half(Floats value) {
  const Words bits = as_words(value);
  const Words sign = hn::ShiftRight<16>(bits) & words(0x8000);
  const Words magnitude = bits & words(0x7fffffff);
  const Words odd = hn::ShiftRight<13>(magnitude) & words(1);
  const Words normal = hn::ShiftRight<13>(magnitude - words(0x38000000 - 0xfff) + odd);
  const Words tiny = as_words(as_floats(magnitude) + floats(0.5f)) - words(0x3f000000);
  Words half = choose(mask_of(as_ints(magnitude) < ints(0x38800000)), tiny, normal);
  half = choose(mask_of(as_ints(magnitude) > ints(0x477fefff)), words(0x7c00), half);
  half = choose(mask_of(as_ints(magnitude) > ints(0x7f800000)), words(0x7e00), half);
  return sign | half;
}

// Returns the value after a round trip through half, as if it were stored and loaded.
inline Floats through_half(Floats value) { return half_to_floats(floats_to_half(value)); }

}  // namespace ggufmill::simd
