#pragma once
// The encoders of IQ1_KT to IQ4_KT, for any way to find the nearest points of a code book. A book has kDimensions,
// point() and one of the functions find() of TrellisBook, which return what those do.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "plugins/ik/kt_types.h"
#include "plugins/ik/nonlinear.h"
#include "plugins/ik/trellis.h"

namespace ggufmill::ik::trellis {

constexpr int kSuperBlock = 256, kSubBlock = 32, kSubBlocks = 8;

inline float largest(const float* x, std::uint64_t count) {
  float largest = 0;
  for (std::uint64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// Computes the weights of a super-block. Importance of a sub-block that is next to nothing is ignored.
inline void trellis_weights(const float* x, const float* importance, float* weights) {
  constexpr float kMin = 1e-14f, kWeight = 1e-4f;
  float sum = 0;
  for (int i = 0; i < kSuperBlock; ++i) sum += x[i] * x[i];
  if (sum < kMin * kSuperBlock) {
    std::fill(weights, weights + kSuperBlock, kWeight);
    return;
  }
  const float added = 2 * sum / kSuperBlock;
  if (!importance) {
    for (int i = 0; i < kSuperBlock; ++i) weights[i] = 0.25f * added + x[i] * x[i];
    return;
  }
  for (int begin = 0; begin < kSuperBlock; begin += kSubBlock) {
    float wx = 0, w2 = 0, x2 = 0;
    for (int i = begin; i < begin + kSubBlock; ++i) {
      weights[i] = importance[i] * std::sqrt(added + x[i] * x[i]);
      wx += weights[i] * std::fabs(x[i]);
      w2 += weights[i] * weights[i];
      x2 += x[i] * x[i];
    }
    if (x2 < kMin || w2 < kMin || wx < kMin) std::fill(weights + begin, weights + begin + kSubBlock, kWeight);
  }
}

// Sums for the scale of a row: each weighted value is rounded before it is multiplied by the level.
inline void add_rounded(Sums& sums, float weight, float level, float x) {
  sums.qx += weight * x * level;
  sums.q2 += weight * level * level;
}

// The points of a sub-block.
template <class Book>
struct Points {
  static constexpr int kDimensions = Book::kDimensions;
  static constexpr int kGroups = kSubBlock / kDimensions;
  int index[kGroups] = {};
  TrellisHint hint[kGroups];
  bool is_complete = true;

  Points() = default;
  // Chooses the nearest points to the values divided by d; the first ones if d is 0. They are likely to be near those
  // of `like`, which were chosen for about the same scale. The book may skip points if their score is less than that
  // of the rival.
  Points(const Book& book, float d, const float* x, const float* weights, const Points& like,
         const TrellisRival& rival = {}) {
    std::copy(like.hint, like.hint + kGroups, hint);
    if (d != 0) is_complete = book.find(TrellisQuery(x, weights, 1 / d), rival, index, hint);
  }

  // Returns the values of the points.
  std::array<float, kSubBlock> levels(const Book& book) const {
    std::array<float, kSubBlock> levels;
    for (int g = 0; g < kGroups; ++g) std::copy_n(book.point(index[g]), kDimensions, levels.begin() + g * kDimensions);
    return levels;
  }

  // Returns the best scale for these points, with its score; zeros if points are missing.
  Best scale(const Book& book, const float* x, const float* weights) const {
    if (!is_complete) return {};
    Lanes qx, q2;
    const std::array<float, kSubBlock> levels = this->levels(book);
    for (std::size_t begin = 0; begin < kSubBlock; begin += 8)
      for (std::size_t i = begin; i < begin + 8; ++i) {
        const float weighted = levels[i] * weights[i];
        qx.add(static_cast<int>(i), weighted, x[i]);
        q2.add(static_cast<int>(i), weighted, levels[i]);
      }
    const float sum = qx.total(), squares = q2.total();
    if (!(squares > 0)) return {};
    return {sum / squares, sum * sum / squares};
  }

  float error(const Book& book, float scale, const float* x, const float* weights) const {
    const std::array<float, kSubBlock> levels = this->levels(book);
    float error = 0;
    for (std::size_t i = 0; i < kSubBlock; ++i) {
      const float off = x[i] - scale * levels[i];
      error += weights[i] * off * off;
    }
    return error;
  }

  void add(const Book& book, int code, const float* x, const float* weights, Sums& sums) const {
    const std::array<float, kSubBlock> levels = this->levels(book);
    for (std::size_t i = 0; i < kSubBlock; ++i)
      add_rounded(sums, weights[i], levels[i] * static_cast<float>(code), x[i]);
  }
};

// The sub-blocks of a row.
template <class Book>
class TrellisRow {
 public:
  struct SubBlock {
    float scale = 0;
    Points<Book> points;
  };

  // Reads importance only here; the values must stay.
  TrellisRow(const float* x, const float* importance, std::uint64_t blocks)
      : x_(x),
        weights_(blocks * kSuperBlock),
        sub_blocks_(blocks * kSubBlocks),
        largest_(largest(x, blocks * kSuperBlock)) {
    for (std::uint64_t at = 0; at < weights_.size(); at += kSuperBlock)
      trellis_weights(x + at, importance ? importance + at : nullptr, weights_.data() + at);
  }

  // Uses other values for everything but the weights.
  void set_values(const float* x) { x_ = x; }

  std::size_t size() const { return sub_blocks_.size(); }
  SubBlock& operator[](std::size_t i) { return sub_blocks_[i]; }
  const float* x(std::size_t i) const { return x_ + i * kSubBlock; }
  const float* weights(std::size_t i) const { return weights_.data() + i * kSubBlock; }

  // The number that the greatest value of a sub-block is mapped to, or 0 if all values are next to nothing.
  float reach(std::size_t i, float least, float most) const {
    const float of_sub_block = largest(x(i), kSubBlock);
    return of_sub_block < kZero ? 0 : std::max(least, most * of_sub_block / largest_);
  }
  float largest_of(std::size_t i) const { return largest(x(i), kSubBlock); }
  float largest_value() const { return largest_; }

  // Returns the scale of greatest magnitude, with its sign; the first of several.
  float extreme() const { return extreme_of(sub_blocks_, &SubBlock::scale); }

  // Returns the best d for scales that are multiples of it, starting with `d`: tries inverse scales. code_of() returns
  // the code of a scale divided by d.
  template <class Inverse, class CodeOf>
  float fit(const Book& book, float d, const Inverse& inverse, const CodeOf& code_of) const {
    constexpr int kTries = 9, kTrials = 2 * kTries + 1, kPadded = 24;  // a multiple of a vector's lanes
    float qx[kPadded] = {}, q2[kPadded] = {};
    for (std::size_t b = 0; b < size(); ++b) {
      const std::array<float, kSubBlock> levels = sub_blocks_[b].points.levels(book);
      float codes[kPadded] = {}, weighted[kSubBlock];
      for (int t = 0; t < kTrials; ++t)
        codes[t] = static_cast<float>(code_of(inverse(t - kTries) * sub_blocks_[b].scale));
      const float* const weight = weights(b);
      for (std::size_t i = 0; i < kSubBlock; ++i) weighted[i] = weight[i] * x(b)[i];
      for (int t = 0; t < kPadded; ++t)  // compilers put trials into the lanes of vectors
        for (std::size_t i = 0; i < kSubBlock; ++i) {
          const float q = levels[i] * codes[t];
          qx[t] += weighted[i] * q;
          q2[t] += weight[i] * q * q;
        }
    }
    Best best{d, 0};
    for (int t = 0; t < kTrials; ++t) best.take({qx[t], q2[t]});
    return best.scale;
  }

 private:
  const float* x_;
  std::vector<float> weights_;
  std::vector<SubBlock> sub_blocks_;
  float largest_;
};

// A scale that is tried for a sub-block, with its points.
template <class Book>
struct Try {
  std::size_t sub_block;
  float d;
  Points<Book> points;
};

// Finds the points of all tries together; the first ones of the book if d is 0.
template <class Book>
void find_points(const Book& book, const TrellisRow<Book>& row, std::vector<Try<Book>>& tries) {
  std::vector<TrellisSearch> searches;
  searches.reserve(tries.size());
  for (Try<Book>& each : tries) {
    if (each.d == 0)
      each.points = {};
    else
      searches.push_back(
          {row.x(each.sub_block), row.weights(each.sub_block), 1 / each.d, each.points.index, each.points.hint});
  }
  book.find(searches);
}

// Calls body(begin, end) for all sub-blocks of a row in parts. Points are found for one part at a time, so that the
// tries of a row of any length take at most some 450 KB.
template <class Body>
void for_each_part(std::size_t sub_blocks, const Body& body) {
  constexpr std::size_t kPart = 512;
  for (std::size_t begin = 0; begin < sub_blocks; begin += kPart) body(begin, std::min(begin + kPart, sub_blocks));
}

// ---- IQ1_KT and IQ2_KT ----

inline std::uint8_t level_of_scale(float scale) { return kValues4.plain.nearest(scale); }
inline int code_of_level(std::uint8_t level) { return static_cast<int>(kValues4.plain[level]); }

// Encodes a row with scales from kValues4. Calls put(sub-block, level of its scale, points) for each sub-block. Tries
// `reaches` numbers that the greatest value is mapped to.
template <class Book, class Put>
float encode_points(const Book& book, TrellisRow<Book>& row, int reaches, float factor, const Put& put) {
  std::vector<Try<Book>> tries;
  for_each_part(row.size(), [&](std::size_t begin, std::size_t end) {
    tries.clear();
    for (std::size_t b = begin; b < end; ++b) {
      float reach = row.reach(b, 90, 124);
      for (int i = 0; reach != 0 && i < reaches; ++i, reach -= 8)
        for (const float largest : {row.largest_of(b), -row.largest_of(b)}) tries.push_back({b, largest / reach, {}});
    }
    find_points(book, row, tries);
    float score = -1;  // the greatest one of the sub-block until now
    for (std::size_t i = 0; i < tries.size(); i += 2) {
      const Try<Book>&positive = tries[i], &negative = tries[i + 1];
      const std::size_t b = positive.sub_block;
      if (i == 0 || tries[i - 1].sub_block != b) score = -1;
      const Best of_positive = positive.points.scale(book, row.x(b), row.weights(b));
      const Best of_negative = negative.points.scale(book, row.x(b), row.weights(b));
      if (!(of_positive.score > score || of_negative.score > score)) continue;
      const bool is_positive = of_positive.score > of_negative.score;
      const Best& best = is_positive ? of_positive : of_negative;
      row[b] = {best.scale, (is_positive ? positive : negative).points};
      score = best.score;
    }
  });
  const float extreme = row.extreme(), lowest = kValues4.plain.front();
  if (extreme == 0) return 0;
  const float d = row.fit(
      book, extreme / lowest, [&](int i) { return (static_cast<float>(i) + lowest) / extreme; },
      [](float scale) { return code_of_level(level_of_scale(scale)); });
  const float inverse = d != 0 ? 1 / d : 0;
  const auto level_of = [&](std::size_t b) { return level_of_scale(inverse * row[b].scale); };
  Sums sums;
  for_each_part(row.size(), [&](std::size_t begin, std::size_t end) {
    tries.clear();
    for (std::size_t b = begin; b < end; ++b)
      tries.push_back({b, d * static_cast<float>(code_of_level(level_of(b))), row[b].points});
    find_points(book, row, tries);
    for (const auto& [b, scale, points] : tries) {
      const std::uint8_t level = level_of(b);
      const float *const x = row.x(b), *const weights = row.weights(b);
      if (d != 0) {
        if (!(row[b].points.error(book, scale, x, weights) < points.error(book, scale, x, weights)))
          row[b].points = points;
        row[b].points.add(book, code_of_level(level), x, weights, sums);
      }
      put(b, level, d != 0 ? row[b].points : Points<Book>());
    }
  });
  return sums.q2 > 0 ? sums.qx / sums.q2 * factor : d;
}

template <class Book>
void encode_iq1_kt(const Book& book, const float* x, const float* importance, TrellisHeader& header,
                   IQ1_KT::Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof *blocks);
  TrellisRow<Book> row(x, importance, count);
  header.d.store(encode_points(book, row, 2, 1.07f, [&](std::size_t at, unsigned level, const auto& points) {
    IQ1_KT::Block& block = blocks[at / kSubBlocks];
    const int b = static_cast<int>(at % kSubBlocks);
    add_bits(block.sh, b, 0, level);
    for (int g = 0; g < 4; ++g) {
      const auto index = static_cast<unsigned>(points.index[g]);
      add_bits(block.ql, 4 * b + g, 0, index & 255);
      add_bits(block.qh, 4 * (b % 4) + g, 4 * (b / 4), index >> 8 & 15);
      add_bits(block.sh, b, 4 + g, index >> 12);
    }
  }));
}

template <class Book>
void encode_iq2_kt(const Book& book, const float* x, const float* importance, TrellisHeader& header,
                   IQ2_KT::Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof *blocks);
  TrellisRow<Book> row(x, importance, count);
  header.d.store(encode_points(book, row, 1, 1, [&](std::size_t at, unsigned level, const auto& points) {
    IQ2_KT::Block& block = blocks[at / kSubBlocks];
    const int b = static_cast<int>(at % kSubBlocks);
    add_bits(block.scales, b % 4, 4 * (b / 4), level);
    for (int g = 0; g < 4; ++g) block.ql[4 * b + g].store(static_cast<unsigned>(points.index[g]));
  }));
}

template <class Book>
void encode_iq3_kt(const Book& book, const float* x, const float* importance, TrellisHeader& header,
                   IQ3_KT::Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof *blocks);
  header.d.store(0);
  TrellisRow<Book> row(x, importance, count);
  if (row.largest_value() == 0) return;
  std::vector<float> sizes(x, x + count * kSuperBlock);
  for (float& size : sizes) size = std::fabs(size);
  row.set_values(sizes.data());
  std::vector<Try<Book>> tries;
  for_each_part(row.size(), [&](std::size_t begin, std::size_t end) {
    tries.clear();
    for (std::size_t b = begin; b < end; ++b) {
      const float reach = row.reach(b, 84, 123);
      for (int i = -3; reach != 0 && i <= 3; ++i)
        tries.push_back({b, row.largest_of(b) / (reach + 8 * static_cast<float>(i)), {}});
    }
    find_points(book, row, tries);
    float score = 0;  // the greatest one of the sub-block until now
    for (std::size_t i = 0; i < tries.size(); ++i) {
      const std::size_t b = tries[i].sub_block;
      if (i == 0 || tries[i - 1].sub_block != b) score = 0;
      const Best best = tries[i].points.scale(book, row.x(b), row.weights(b));
      if (!(best.score > score)) continue;
      score = best.score;
      row[b] = {best.scale, tries[i].points};
    }
  });
  const float extreme = row.extreme();
  const auto code_of = [](float scale) { return std::clamp(nearest_int(scale), 0, 15); };
  const float d = row.fit(
      book, extreme / 15, [&](int i) { return (static_cast<float>(i) * 0.2f + 15) / extreme; }, code_of);
  const float inverse = d != 0 ? 1 / d : 0;
  Sums sums;
  for_each_part(row.size(), [&](std::size_t begin, std::size_t end) {
    tries.clear();
    for (std::size_t at = begin; at < end; ++at)
      tries.push_back({at, d * static_cast<float>(code_of(inverse * row[at].scale)), row[at].points});
    find_points(book, row, tries);
    for (const auto& [at, scale, points] : tries) {
      IQ3_KT::Block& block = blocks[at / kSubBlocks];
      const int b = static_cast<int>(at % kSubBlocks), code = code_of(inverse * row[at].scale);
      add_bits(block.scales, b % 4, 4 * (b / 4), static_cast<unsigned>(code));
      for (int j = 0; j < kSubBlock; ++j) add_bits(block.qh, j, b, x[at * kSubBlock + static_cast<unsigned>(j)] < 0);
      for (int g = 0; g < 4; ++g) block.ql[4 * b + g].store(static_cast<unsigned>(points.index[g]));
      points.add(book, code, row.x(at), row.weights(at), sums);
    }
  });
  header.d.store(sums.q2 > 0 ? sums.qx / sums.q2 : d);
}

template <class Book>
void encode_iq4_kt(const Book& book, const Book& second, const float* x, const float* importance, TrellisHeader& header,
                   IQ4_KT::Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof *blocks);
  header.d.store(0);
  TrellisRow<Book> row(x, importance, count);
  if (row.largest_value() == 0) return;
  const Book* const books[2] = {&book, &second};
  for (std::size_t at = 0; at < row.size(); ++at) {
    const float reach = row.reach(at, 90, 124), largest = row.largest_of(at);
    const float *const values = row.x(at), *const weights = row.weights(at);
    std::uint8_t& scale_bits = blocks[at / kSubBlocks].shb[at % kSubBlocks * 4];
    if (reach == 0) continue;
    TrellisRival rival(values, weights);
    Points<Book> tried[2][2];  // by book and sign
    // Tries a scale, and takes it if its score is greater. Returns the score then, else 0.
    const auto try_scale = [&](bool is_second, float d) {
      Points<Book>& points = tried[is_second][d < 0];
      points = Points<Book>(*books[is_second], d, values, weights, points, rival);
      const Best best = points.scale(*books[is_second], values, weights);
      if (!(best.score > rival.score)) return 0.0f;
      row[at] = {best.scale, points};
      if (is_second) scale_bits = 1;
      return best.score;
    };
    for (const bool is_second : {false, true}) {
      if (is_second) try_scale(true, row[at].scale);  // its score is not compared with the next ones
      for (int i = -2; i <= 2; ++i)
        for (const float numerator : {largest, -largest})
          if (const float best = try_scale(is_second, numerator / (8 * static_cast<float>(i) + reach)); best > 0)
            rival.score = best;
    }
  }
  const float d = -row.extreme() / 64;
  header.d.store(d);
  if (d == 0) return;
  const float inverse = 1 / d;
  Sums sums;
  for (std::size_t at = 0; at < row.size(); ++at) {
    IQ4_KT::Block& block = blocks[at / kSubBlocks];
    const int b = static_cast<int>(at % kSubBlocks), code = std::min(nearest_int(inverse * row[at].scale), 63);
    std::uint8_t* const shb = block.shb + 4 * b;
    const Book& used = *books[shb[0] & 1];
    shb[0] = static_cast<std::uint8_t>((static_cast<unsigned>(code) + 64) << 1 | (shb[0] & 1));
    const Points<Book> points(used, d * static_cast<float>(code), row.x(at), row.weights(at), row[at].points);
    unsigned high = 0;
    for (int g = 0; g < 8; ++g) {
      const auto index = static_cast<unsigned>(points.index[g]);
      const int n = 8 * b + g;
      high |= index >> 12 << (3 * g);
      block.ql[n] = static_cast<std::uint8_t>(index);
      add_bits(block.qh, n % 32, 4 * (n / 32), index >> 8 & 15);
    }
    for (int i = 0; i < 3; ++i) shb[1 + i] = static_cast<std::uint8_t>(high >> (8 * i));
    points.add(used, code, row.x(at), row.weights(at), sums);
  }
  header.d.store(sums.q2 > 0 ? sums.qx / sums.q2 : d);
}

}  // namespace ggufmill::ik::trellis
