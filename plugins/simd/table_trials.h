#pragma once
// Sums for several scales of values whose levels are entries of a table.
//
// Source of speed: if all inverse scales are within a few percent, a scaled value passes at most one or two of the
// borders between levels (kBorders; proven below from the table). The levels on either side, and their terms of the
// sums, are looked up once; a trial is then a product, a comparison and a choice.

#include <algorithm>

#include "plugins/simd/level_table.h"

namespace ggufmill::simd {

// Returns the greatest number of borders that x * inverse can pass when the magnitude of the inverse varies between
// `least` and `most` per greatest value.
template <std::size_t kSize>
constexpr int borders_between(const LevelTable<kSize>& table, float least, float most) {
  least *= 0.9999f, most *= 1.0001f;
  int passed = 0;
  for (std::size_t first = 0; first + 1 < kSize; ++first)
    for (std::size_t last = first; last + 1 < kSize; ++last) {
      const float a = table.border(first), b = table.border(last);
      if ((a < 0) != (b < 0)) continue;  // the sign does not change
      const float near = a < 0 ? -b : a, far = a < 0 ? -a : b;
      // The product is below `near` for the least inverse and not below `far` for the greatest one.
      if (far <= most && far * least <= near * most) passed = std::max(passed, static_cast<int>(last - first) + 1);
    }
  return passed;
}

// The sums of kCount values for inverse scales that pass kBorders borders at most.
template <std::size_t kSize, int kCount, int kBorders>
class TableTrials {
 public:
  static_assert(kBorders == 1 || kBorders == 2);
  // Trials in flight; the sums of all of them stay in registers.
  static constexpr int kAtOnce = kLanes == 16 ? 8 : 4;

  // Value and weight i of a lane's sub-block are at x[i * kLanes] and weights[i * kLanes].
  void read(const float* x, const float* weights) { x_ = x, weights_ = weights; }
  const float* values(int i) const { return x_ + i * kStep; }
  const float* weights(int i) const { return weights_ + i * kStep; }
  Floats value(int i) const { return hn::Load(kFloats, values(i)); }
  Floats weight(int i) const { return hn::Load(kFloats, weights(i)); }

  // Prepares the terms for inverse scales between two ones.
  HWY_INLINE void prepare(const LevelTable<kSize>& table, Floats one, Floats other) {
    for (int i = 0; i < kCount; ++i) {
      const Floats x = value(i), weight = this->weight(i);
      Words level = table.level(lesser(one * x, other * x));
      GGUFMILL_UNROLL
      for (int n = 0; n <= kBorders; ++n) {
        const Floats q = table.value(level), weighted = weight * q;
        hn::Store(weighted * x, kFloats, terms_[i].qx[n]);
        hn::Store(weighted * q, kFloats, terms_[i].q2[n]);
        if (n == kBorders) break;
        hn::Store(table.border(level), kFloats, terms_[i].border[n]);
        level = hn::Min(level + words(1), words(kSize - 1));
      }
    }
  }

  // Computes the sums of kAtOnce trials: those of qx and of q2 in turn.
  HWY_INLINE void sum(const float* inverses, float* sums) const {
    Floats qx[kAtOnce], q2[kAtOnce];
    GGUFMILL_UNROLL
    for (int t = 0; t < kAtOnce; ++t) qx[t] = q2[t] = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Terms& terms = terms_[i];
      const Floats x = value(i), border = hn::Load(kFloats, terms.border[0]);
      const Floats qx0 = hn::Load(kFloats, terms.qx[0]), qx1 = hn::Load(kFloats, terms.qx[1]);
      const Floats q20 = hn::Load(kFloats, terms.q2[0]), q21 = hn::Load(kFloats, terms.q2[1]);
      GGUFMILL_UNROLL
      for (int t = 0; t < kAtOnce; ++t) {
        const Floats scaled = hn::Load(kFloats, inverses + t * kStep) * x;
        const Mask is_next = scaled >= border;
        Floats of_qx = choose(is_next, qx1, qx0), of_q2 = choose(is_next, q21, q20);
        if constexpr (kBorders == 2) {
          const Mask is_last = scaled >= hn::Load(kFloats, terms.border[1]);
          of_qx = choose(is_last, hn::Load(kFloats, terms.qx[2]), of_qx);
          of_q2 = choose(is_last, hn::Load(kFloats, terms.q2[2]), of_q2);
        }
        qx[t] = qx[t] + of_qx;
        q2[t] = q2[t] + of_q2;
      }
    }
    GGUFMILL_UNROLL
    for (int t = 0; t < kAtOnce; ++t) {
      hn::Store(qx[t], kFloats, sums + 2 * t * kStep);
      hn::Store(q2[t], kFloats, sums + (2 * t + 1) * kStep);
    }
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  // The borders at which a scaled value changes from a level to the next, and its terms in the sums for each of the
  // levels.
  struct Terms {
    float border[kBorders][kLanes];
    float qx[kBorders + 1][kLanes], q2[kBorders + 1][kLanes];
  };

  const float *x_, *weights_;
  alignas(64) Terms terms_[kCount];
};

}  // namespace ggufmill::simd
