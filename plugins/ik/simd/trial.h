#pragma once
// Says when a try of a scale cannot win any more, although not all of its points are known.
//
// Proof. Let A be the groups whose points are known, and B the others; qx = sum(w p x), q2 = sum(w p^2), and T =
// sum(w x^2). By Cauchy's inequality, qx^2 / q2 <= qx(A)^2 / q2(A) + qx(B)^2 / q2(B) <= qx(A)^2 / q2(A) + T(B),
// whatever the points of B are. With u = 2^-24, the errors of qx and q2 of Points::scale() are at most 8 u sqrt(q2 T)
// and 8 u q2, so a score has an error of less than 30 u T. The sums here have 12 roundings at most, and the bound has
// an error of less than 100 u T. kSpare is more than both. Numbers are limited so that nothing overflows, and so that
// what underflows is less than the rest of kSpare.

#include <bit>
#include <limits>

#include "plugins/ik/trellis.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

template <int kDimensions>
class Trial {
 public:
  static constexpr int kGroups = ik::TrellisQuery::kSubBlock / kDimensions;

  Trial(const ik::TrellisQuery& query, const ik::TrellisRival& rival)
      : query_(query), least_(rival.score - (1 + kSpare) * rival.squares) {
    const bool is_in_range = rival.weights < 1e15f && rival.squares < 1e15f && rival.largest < 1e10f;
    if (rival.is_regular && is_in_range && rival.score > 1e-20f)
      error_ = (rival.squares - rival.score) * query.inverse * query.inverse;
  }

  // Adds a group with its point, at this distance from the scaled values. Returns false if the score is less than that
  // of the rival, whatever the other points are.
  HWY_INLINE bool add(int group, const std::int8_t* point, float distance) {
    GGUFMILL_UNROLL
    for (int k = 0; k < kDimensions; k += 4) {
      const auto level = hn::ConvertTo(kFour, hn::PromoteTo(kFourInts, hn::LoadU(kFourBytes, point + k)));
      const auto x = hn::LoadU(kFour, query_.x + group * kDimensions + k);
      const auto weight = hn::LoadU(kFour, query_.weights + group * kDimensions + k);
      qx_ = qx_ + weight * level * x;
      q2_ = q2_ + weight * level * level;
      squares_ = squares_ + weight * x * x;
    }
    distance_ += distance;
    // The error with this scale is not less than that with the best one.
    return !(distance_ > error_) || can_win();
  }

 private:
  static constexpr hn::Full128<float> kFour{};
  static constexpr hn::Rebind<std::int32_t, decltype(kFour)> kFourInts{};
  static constexpr hn::Rebind<std::int8_t, decltype(kFour)> kFourBytes{};
  static constexpr float kSpare = 2e-5f;

  bool can_win() const {
    const float qx = hn::GetLane(hn::SumOfLanes(kFour, qx_)), q2 = hn::GetLane(hn::SumOfLanes(kFour, q2_));
    return !(q2 > 1e-15f && qx * qx / q2 - hn::GetLane(hn::SumOfLanes(kFour, squares_)) < least_);
  }

  const ik::TrellisQuery& query_;
  const float least_;                                     // of the score less T
  float error_ = std::numeric_limits<float>::infinity();  // of the rival, for scaled values
  float distance_ = 0;
  hn::Vec<hn::Full128<float>> qx_ = hn::Zero(kFour), q2_ = qx_, squares_ = qx_;
};

// Goes through groups from the greatest distance of the last search to the least one, so that a try stops early.
template <int kGroups>
class FarthestFirst {
 public:
  explicit FarthestFirst(const ik::TrellisHint* hints) {
    for (int g = 0; g < kGroups; ++g)  // bits of floats that are not negative are in their order
      keys_[g] = (std::bit_cast<std::int32_t>(hints[g].distance) & ~(kGroups - 1)) | g;
  }

  int next() {
    std::int32_t most = keys_[0];
    for (int g = 1; g < kGroups; ++g) most = std::max(most, keys_[g]);
    const int group = most & (kGroups - 1);
    keys_[group] = std::numeric_limits<std::int32_t>::min() | group;
    return group;
  }

 private:
  std::int32_t keys_[kGroups];
};

}  // namespace ggufmill::simd
