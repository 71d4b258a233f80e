#include "plugins/ik/llama_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/ik/nonlinear.h"

namespace ggufmill::ik {
namespace {

// Codes for values x ~ scale * code, in [-limit, limit - 1].
class CodeSearch {
 public:
  CodeSearch(int count, int limit, const float* x, const float* weights)
      : count_(count), limit_(limit), x_(x), weights_(weights) {}

  // Returns the scale. `extreme` is not 0.
  float run(float extreme) {
    const auto limit = static_cast<float>(limit_);
    const float first = -limit / extreme;
    choose(first);
    sums_ = sums_of(first);
    if (sums_.q2 != 0) best_.start(sums_);
    for (int i = -9; i <= 9; ++i) {
      take(-(limit + 0.1f * static_cast<float>(i)) / extreme);
      take((limit - 1 + 0.1f * static_cast<float>(i)) / extreme);
    }
    for (int i = 0; i < count_ * (2 * limit_ - 1); ++i)
      if (!step()) break;
    return best_.scale;
  }
  int code(int i) const { return codes_[i]; }

 private:
  int code_of(float inverse, int i) const { return std::clamp(nearest_int(inverse * x_[i]), -limit_, limit_ - 1); }
  void choose(float inverse) {
    for (int i = 0; i < count_; ++i) codes_[i] = code_of(inverse, i);
  }
  Sums sums_of(float inverse) const {
    Sums sums;
    for (int i = 0; i < count_; ++i) {
      const auto code = static_cast<float>(code_of(inverse, i));
      sums.qx += weights_[i] * x_[i] * code;
      sums.q2 += weights_[i] * code * code;
    }
    return sums;
  }
  void take(float inverse) {
    const Sums sums = sums_of(inverse);
    if (!best_.take(sums)) return;
    sums_ = sums;
    choose(inverse);
  }
  // Changes by one the code with the steepest gradient. Returns false if that does not help.
  bool step() {
    float steepest = 0, gradient = 0;
    int changed = -1;
    for (int i = 0; i < count_; ++i) {
      const float g = best_.scale * weights_[i] * (x_[i] - best_.scale * static_cast<float>(codes_[i]));
      const bool may_change = (g > 0 && codes_[i] < limit_ - 1) || (g < 0 && codes_[i] > -limit_);
      if (!may_change || !(std::fabs(g) > steepest)) continue;
      steepest = std::fabs(g);
      gradient = g;
      changed = i;
    }
    if (changed < 0) return false;
    const float weight = weights_[changed], weighted = weight * x_[changed];
    const int code = codes_[changed];
    Sums sums = sums_;
    if (gradient > 0) {
      sums.qx += weighted;
      sums.q2 += weight * static_cast<float>(2 * code + 1);
    } else {
      sums.qx -= weighted;
      sums.q2 -= weight * static_cast<float>(2 * code - 1);
    }
    if (!best_.take(sums)) return false;
    sums_ = sums;
    codes_[changed] += gradient > 0 ? 1 : -1;
    return true;
  }

  const int count_, limit_;
  const float *x_, *weights_;
  int codes_[kMaxValues] = {};
  Sums sums_;
  Best best_;
};

// Levels for values x ~ scale * level + minimum, in [0, limit].
class LineSearch {
 public:
  LineSearch(int count, int limit, const float* x, const float* weights, std::uint8_t* levels)
      : count_(count), limit_(limit), x_(x), weights_(weights), levels_(levels), low_(x[0]), high_(x[0]) {
    for (int i = 0; i < count; ++i) {
      low_ = x[i] < low_ ? x[i] : low_;
      high_ = x[i] > high_ ? x[i] : high_;
      const double w = weights[i], value = x[i];
      sum_w_ += w;
      sum_x_ += w * value;
      sum_x2_ += w * value * value;
    }
    if (low_ > 0) low_ = 0;
  }

  reference::AffineFit run() {
    std::fill_n(levels_, count_, std::uint8_t{0});
    fit_.minimum = low_;
    if (high_ - low_ < kMinRange) return {0, low_};
    start();
    const auto& search = reference::kWeightedSearch;
    for (int i = 0; i <= search.last; ++i) {
      const float inverse =
          (search.first + search.step * static_cast<float>(i) + static_cast<float>(limit_)) / (high_ - fit_.minimum);
      attempt(inverse);
    }
    walk();
    return fit_;
  }

 private:
  // Sums over the values with their levels.
  struct LevelSums {
    double l = 0, l2 = 0, xl = 0;

    void add(double weight, int level, float x) {
      l += weight * level;
      l2 += weight * level * level;
      xl += weight * level * double{x};
    }
  };
  struct Line {
    double scale, minimum;
  };

  int level_at(float inverse, int i) const {
    return std::clamp(nearest_int(inverse * (x_[i] - fit_.minimum)), 0, limit_);
  }

  void start() {
    const float inverse = static_cast<float>(limit_) / (high_ - low_);
    fit_.scale = 1 / inverse;
    for (int i = 0; i < count_; ++i) {
      levels_[i] = static_cast<std::uint8_t>(level_at(inverse, i));
      const double off = double{fit_.scale} * levels_[i] + double{fit_.minimum} - double{x_[i]};
      error_ += double{weights_[i]} * (off * off);
    }
  }

  // Sets the line of least squares. Returns false if the levels do not determine one.
  bool line_of(const LevelSums& sums, Line& line) const {
    const double determinant = sum_w_ * sums.l2 - sums.l * sums.l;
    if (!(determinant > 0)) return false;
    line.scale = (sum_w_ * sums.xl - sum_x_ * sums.l) / determinant;
    line.minimum = (sums.l2 * sum_x_ - sums.l * sums.xl) / determinant;
    if (line.minimum > 0) line = {sums.xl / sums.l2, 0};
    return true;
  }

  void attempt(float inverse) {
    std::uint8_t tried[kMaxValues];
    LevelSums sums;
    for (int i = 0; i < count_; ++i) {
      tried[i] = static_cast<std::uint8_t>(level_at(inverse, i));
      sums.add(weights_[i], tried[i], x_[i]);
    }
    Line line{};
    if (!line_of(sums, line)) return;
    const auto [scale, minimum] = line;
    const double error = sum_x2_ - 2 * scale * sums.xl - 2 * minimum * sum_x_ + 2 * scale * minimum * sums.l +
                         scale * scale * sums.l2 + minimum * minimum * sum_w_;
    if (!(error < error_)) return;
    std::copy_n(tried, count_, levels_);
    error_ = error;
    set(line);
  }

  void set(const Line& line) { fit_ = {static_cast<float>(line.scale), static_cast<float>(line.minimum)}; }

  // The share of the squares that is explained.
  double score_of(const LevelSums& sums, const Line& line) const {
    const auto [scale, minimum] = line;
    return 2 * scale * sums.xl + 2 * minimum * sum_x_ - 2 * scale * minimum * sums.l - scale * scale * sums.l2 -
           minimum * minimum * sum_w_;
  }

  // Changes by one the level of the value that is farthest off, as long as that helps.
  void walk() {
    LevelSums sums;
    for (int i = 0; i < count_; ++i) sums.add(weights_[i], levels_[i], x_[i]);
    double best = score_of(sums, {fit_.scale, fit_.minimum});
    int last = -1, last_direction = 0;
    for (int i = 0; i < limit_ * count_; ++i) {
      int direction = 0;
      const int changed = farthest(direction);
      if (changed < 0 || (changed == last && direction == -last_direction)) return;
      const double weight = weights_[changed];
      sums.l += weight * direction;
      sums.l2 += weight * (2 * levels_[changed] * direction + 1);
      sums.xl += weight * double{x_[changed]} * direction;
      Line line{};
      if (!line_of(sums, line) || line.scale < 0) return;
      const double score = score_of(sums, line);
      if (score <= best) return;
      best = score;
      set(line);
      levels_[changed] = static_cast<std::uint8_t>(levels_[changed] + direction);
      last = changed;
      last_direction = direction;
    }
  }

  // Returns the value whose level can change toward it; -1 if none can.
  int farthest(int& direction) const {
    float most = 0;
    int found = -1;
    for (int i = 0; i < count_; ++i) {
      const float off = x_[i] - fit_.scale * static_cast<float>(levels_[i]) - fit_.minimum;
      if (off > 0 && levels_[i] < limit_ && off > most) {
        most = off;
        found = i;
        direction = 1;
      } else if (off < 0 && levels_[i] > 0 && -off > most) {
        most = -off;
        found = i;
        direction = -1;
      }
    }
    return found;
  }

  const int count_, limit_;
  const float *x_, *weights_;
  std::uint8_t* levels_;
  float low_, high_;
  double sum_w_ = 0, sum_x_ = 0, sum_x2_ = 0, error_ = 0;
  reference::AffineFit fit_{};
};

// A scale for levels that are entries of a table.
class TableSearch {
 public:
  TableSearch(const float* x, const float* weights) : x_(x), weights_(weights) {}

  // `extreme` is not 0.
  float run(float extreme) {
    const float first = 1 / (-extreme / table_.front());
    choose(first);
    sums_ = sums_of(first);
    best_.start(sums_);
    for (int i = -kTries; i <= kTries; ++i) {
      take((static_cast<float>(i) + table_.front()) / extreme);
      take((static_cast<float>(i) + table_[kLast]) / extreme);
    }
    for (int i = 0; i < 32 * kCount; ++i)
      if (!step()) break;
    return best_.scale;
  }

 private:
  static constexpr int kCount = 32, kTries = 7, kLast = 15;

  void choose(float inverse) {
    for (int i = 0; i < kCount; ++i) levels_[i] = table_.nearest(inverse * x_[i]);
  }
  Sums sums_of(float inverse) const {
    Sums sums;
    for (int i = 0; i < kCount; ++i) sums.add(weights_[i], table_[table_.nearest(inverse * x_[i])], x_[i]);
    return sums;
  }
  void take(float inverse) {
    const Sums sums = sums_of(inverse);
    if (!best_.take(sums)) return;
    sums_ = sums;
    choose(inverse);
  }
  float level(int i, int direction = 0) const { return table_[static_cast<std::size_t>(levels_[i] + direction)]; }

  // Moves by one entry the level for which that takes the shortest step along its gradient. Returns false if that does
  // not help.
  bool step() {
    float shortest = std::numeric_limits<float>::infinity();
    int changed = -1, direction = 0;
    for (int i = 0; i < kCount; ++i) {
      const float gradient = best_.scale * weights_[i] * (x_[i] - best_.scale * level(i));
      const int to = gradient > 0 && levels_[i] < kLast ? 1 : gradient < 0 && levels_[i] > 0 ? -1 : 0;
      if (to == 0) continue;
      const float length = (level(i, to) - level(i)) / gradient;
      if (!(length < shortest)) continue;
      shortest = length;
      changed = i;
      direction = to;
    }
    if (changed < 0) return false;
    const float weight = weights_[changed], from = level(changed), to = level(changed, direction);
    Sums sums = sums_;
    sums.qx += weight * x_[changed] * (to - from);
    sums.q2 += weight * (to * to - from * from);
    if (!best_.take(sums)) return false;
    sums_ = sums;
    levels_[changed] = static_cast<std::uint8_t>(levels_[changed] + direction);
    return true;
  }

  static constexpr const Table<16>& table_ = kValues4.plain;
  const float *x_, *weights_;
  std::uint8_t levels_[kCount] = {};
  Sums sums_;
  Best best_;
};

}  // namespace

float fit_symmetric(int count, int limit, const float* x, const float* weights, std::uint8_t* levels) {
  std::fill_n(levels, count, std::uint8_t{0});
  const float extreme = reference::extreme_or_zero({x, static_cast<std::size_t>(count)});
  if (extreme == 0) return 0;
  CodeSearch search(count, limit, x, weights);
  const float scale = search.run(extreme);
  for (int i = 0; i < count; ++i) levels[i] = static_cast<std::uint8_t>(search.code(i) + limit);
  return scale;
}

reference::AffineFit fit_affine(int count, int limit, const float* x, const float* weights, std::uint8_t* levels) {
  return LineSearch(count, limit, x, weights, levels).run();
}

float fit_unequal(const float* x, const float* weights) {
  const float extreme = reference::extreme_or_zero({x, kMaxValues});
  return extreme == 0 ? 0 : TableSearch(x, weights).run(extreme);
}

}  // namespace ggufmill::ik
