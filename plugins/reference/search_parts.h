#pragma once
// Parts that the searches have in common.

#include <cstddef>

#include "plugins/reference/floats.h"

namespace ggufmill::reference {

inline float as_half(float value) { return half_to_float(float_to_half(value)); }

// Clamps first, so that every value, NaN included, has a defined result; then rounds to nearest, ties to even. The
// bounds are whole numbers within +-2^21.
inline float nearest_within(float value, float low, float high) {
  const float above = value > low ? value : low;
  const float within = above < high ? above : high;
  return (within + 12582912.0f) - 12582912.0f;
}
inline int nearest_code(float value, int low, int high) {
  return static_cast<int>(nearest_within(value, static_cast<float>(low), static_cast<float>(high)));
}

inline float inverse_of(float value) { return value != 0 ? 1.0f / value : 0.0f; }

// Returns the sum of w x x, in element order.
inline double weighted_square(const float* x, const float* w, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += double{w[i]} * double{x[i]} * double{x[i]};
  return sum;
}

// The best few of the candidates that were offered, in order; of equal ones, the first stays ahead. A candidate has an
// `error` and is_like().
template <class Candidate, int kMax>
class Best {
 public:
  explicit Best(int most = kMax) : most_(most) {}
  void offer(const Candidate& candidate) {
    for (int i = 0; i < count_; ++i)
      if (candidate.is_like(best_[i])) return;
    int at = count_;
    while (at > 0 && candidate.error < best_[at - 1].error) --at;
    if (at == most_) return;
    if (count_ < most_) ++count_;
    for (int i = count_ - 1; i > at; --i) best_[i] = best_[i - 1];
    best_[at] = candidate;
  }
  const Candidate* begin() const { return best_; }
  const Candidate* end() const { return best_ + count_; }
  bool is_empty() const { return count_ == 0; }

 private:
  int most_, count_ = 0;
  Candidate best_[kMax];
};

}  // namespace ggufmill::reference
