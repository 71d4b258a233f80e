#include "plugins/ik/simd/scanned_book.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "plugins/ik/simd/trial.h"
#include "plugins/simd/bytes.h"
#include "plugins/simd/spread.h"

namespace ggufmill::simd {
namespace {

constexpr hn::Repartition<std::uint8_t, decltype(kWords)> kPoints{};  // a byte for each point or block
using PointBytes = hn::Vec<decltype(kPoints)>;

constexpr float kUnits = 240;  // of the best distance; sums saturate above it

// Returns the weighted squared distance of a point, added in the order of a register's halves.
HWY_INLINE float distance(const std::int8_t* point, const float* x, const float* weights) {
  const hn::Full128<float> four{};
  const hn::Rebind<std::int32_t, decltype(four)> ints{};
  const hn::Rebind<std::int8_t, decltype(four)> bytes{};
  const auto terms = [&](int k) {
    const auto off = hn::ConvertTo(four, hn::PromoteTo(ints, hn::LoadU(bytes, point + k))) - hn::LoadU(four, x + k);
    return hn::LoadU(four, weights + k) * (off * off);
  };
  const auto sums = terms(0) + terms(4), two = sums + hn::ConcatUpperUpper(four, sums, sums);
  return hn::GetLane(two) + hn::GetLane(hn::Shuffle2301(two));
}

// Returns a table of 16 bytes, in each part of a vector. units(i) returns those from number i on, from 0 to 255.
template <class Units>
HWY_INLINE PointBytes table_of(const Units& units) {
#if HWY_TARGET == HWY_AVX3
  return PointBytes{_mm512_broadcast_i32x4(_mm512_cvtusepi32_epi8(units(0).raw))};
#elif HWY_TARGET == HWY_AVX2
  const __m256i words = _mm256_packus_epi32(units(0).raw, units(8).raw), bytes = _mm256_packus_epi16(words, words);
  return PointBytes{_mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5))};
#else
  alignas(16) std::uint8_t bytes[16];
  for (int i = 0; i < 16; i += static_cast<int>(kLanes)) store_bytes(as_words(units(i)), bytes + i);
  return hn::LoadDup128(kPoints, bytes);
#endif
}

// Calls take(i) for the bits that are set in a mask.
template <class Near, class Take>
HWY_INLINE void each_set(Near near, const Take& take) {
  if (HWY_LIKELY(hn::AllFalse(kPoints, near))) return;
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(kPoints, near, bytes);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  for (; bits != 0; bits &= bits - 1) take(std::countr_zero(bits));
}

}  // namespace

ScannedBook::ScannedBook(const ik::TrellisBook<kDimensions>& book)
    : book_(book), clusters_(static_cast<std::size_t>(book.kClusters)) {
  for (int number = 0; number < book.kClusters; ++number) add(number);
}

void ScannedBook::add(int number) {
  Cluster& cluster = clusters_[static_cast<std::size_t>(number)];
  const OrderedPoints<kDimensions> ordered(book_, number, kBlock);
  cluster.count = static_cast<std::int32_t>(ordered.points.size());
  cluster.first_point = static_cast<std::uint32_t>(points_.size());
  points_.insert(points_.end(), ordered.points.begin(), ordered.points.end());
  indices_.insert(indices_.end(), ordered.indices.begin(), ordered.indices.end());
  places_.insert(places_.end(), ordered.places.begin(), ordered.places.end());
  divide(ordered.points, cluster);
  add_blocks(ordered.points, cluster);
  find_seeds(ordered.points, cluster);
}

// Divides each coordinate into parts of about as many points.
void ScannedBook::divide(const TrellisPoints<kDimensions>& points, Cluster& cluster) {
  const std::size_t count = points.size();
  std::vector<std::int8_t> sorted(count);
  for (std::size_t k = 0; k < kDimensions; ++k) {
    for (std::size_t i = 0; i < count; ++i) sorted[i] = points[i][k];
    std::sort(sorted.begin(), sorted.end());
    std::size_t begin = 0;
    for (std::size_t part = 0; part < kParts; ++part) {
      std::size_t end = std::max(begin, count * (part + 1) / kParts);
      while (end > begin && end < count && sorted[end] == sorted[end - 1]) ++end;  // equal values are in one part
      // A part without points, which is not the first, is never chosen.
      cluster.low[k][part] = begin < end ? sorted[begin] : cluster.high[k][part - 1];
      cluster.high[k][part] = begin < end ? sorted[end - 1] : cluster.high[k][part - 1];
      begin = end;
    }
    cluster.middle[k] = sorted[count / 2];
  }
}

void ScannedBook::add_blocks(const TrellisPoints<kDimensions>& points, Cluster& cluster) {
  const std::size_t blocks = (points.size() + kBlock - 1) / kBlock, stride = (blocks + kWide - 1) / kWide * kWide;
  cluster.first_block = static_cast<std::uint32_t>(parts_.size() / kBlockBytes);
  parts_.resize(parts_.size() + blocks * kBlockBytes);
  std::uint8_t* const bytes = parts_.data() + std::size_t{cluster.first_block} * kBlockBytes;
  cluster.first_range = static_cast<std::uint32_t>(ranges_.size());
  ranges_.resize(ranges_.size() + stride * kDimensions, 15);  // from the last part to the first one
  std::uint8_t* const ranges = ranges_.data() + cluster.first_range;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t k = 0; k < kDimensions; ++k) {
      unsigned part = 0;
      while (points[i][k] > cluster.high[k][part]) ++part;
      std::uint8_t& byte = bytes[i / kBlock * kBlockBytes + k / 2 * kBlock + i % kBlock];
      byte = static_cast<std::uint8_t>(byte | part << (4 * (k % 2)));
      std::uint8_t& range = ranges[k * stride + i / kBlock];
      range = static_cast<std::uint8_t>(std::min(range & 15u, part) | std::max(range / 16u, part) << 4);
    }
}

int ScannedBook::cell_of(const Cluster& cluster, const float* x) {
  int cell = 0;
  for (int k = 0; k < kDimensions; ++k) cell |= x[k] > cluster.middle[k] ? 1 << k : 0;
  return cell;
}

// Finds a point for each cell that is near to its middle.
void ScannedBook::find_seeds(const TrellisPoints<kDimensions>& points, Cluster& cluster) {
  // The mean of each coordinate of the points on each side of its middle.
  float sums[2][kDimensions] = {}, counts[2][kDimensions] = {};
  for (const auto& point : points)
    for (std::size_t k = 0; k < kDimensions; ++k) {
      const bool is_above = point[k] > cluster.middle[k];
      sums[is_above][k] += static_cast<float>(point[k]);
      counts[is_above][k] += 1;
    }
  const std::size_t step = points.size() / 128 + 1;  // a few of the points are enough
  for (std::size_t cell = 0; cell < kCells; ++cell) {
    float middle[kDimensions];
    for (std::size_t k = 0; k < kDimensions; ++k)
      middle[k] = sums[cell >> k & 1][k] / std::max(counts[cell >> k & 1][k], 1.0f);
    float least = 0;
    for (std::size_t i = 0; i < points.size(); i += step) {
      float distance = 0;
      for (std::size_t k = 0; k < kDimensions; ++k) {
        const float off = static_cast<float>(points[i][k]) - middle[k];
        distance += off * off;
      }
      if (i != 0 && distance >= least) continue;
      least = distance;
      cluster.seeds[cell] = static_cast<std::uint16_t>(i);
    }
  }
}

// A search in one cluster.
class ScannedBook::Search {
 public:
  Search(const ScannedBook& book, const Cluster& cluster, const float* x, const float* weights)
      : cluster_(cluster),
        points_(book.points_.data() + cluster.first_point),
        places_(book.places_.data() + cluster.first_point),
        parts_(book.parts_.data() + std::size_t{cluster.first_block} * kBlockBytes),
        ranges_(book.ranges_.data() + cluster.first_range),
        x_(x),
        weights_(weights) {}

  // Returns the number of the nearest point, or -1 if the distances are too great or too small for the bounds. `seed`
  // is one of the points; if it is not near, the units of the bounds are chosen for half its distance at first.
  int run(int seed, bool is_near) {
    nearest_ = seed;
    least_ = distance_of(seed);
    if (!in_range(least_)) return -1;
    for (float units_for = is_near ? least_ : 0.5f * least_;; units_for = least_) {
      scale_ = kUnits / units_for;
      set_limit();
      scan(is_near);
      if (!in_range(least_)) return -1;
      if (least_ * scale_ < kUnits + 1) return nearest_;
    }
  }
  float distance() const { return least_; }  // of the point that was found

 private:
  static bool in_range(float distance) { return distance > 1e-25f && distance < 1e25f; }

  int blocks() const { return (cluster_.count + kBlock - 1) / kBlock; }
  float distance_of(int number) const { return simd::distance(points_[number].data(), x_, weights_); }
  void set_limit() { limit_ = static_cast<std::uint8_t>(std::min(least_ * scale_, kUnits) + 1); }

  // Returns the bounds of the parts of a coordinate in units.
  HWY_INLINE PointBytes bounds_of_parts(int k) const {
    const Floats x = floats(x_[k]), weight = floats(std::min(weights_[k] * scale_, 1e30f));
    return table_of([&](int part) {
      const Floats below = to_floats(load_signed(low(k) + part)) - x,
                   above = x - to_floats(load_signed(high(k) + part));
      const Floats off = greater(greater(below, above), floats(0));
      return hn::ConvertTo(kInts, lesser(weight * (off * off), floats(255)));
    });
  }
  const std::uint8_t* low(int k) const { return reinterpret_cast<const std::uint8_t*>(cluster_.low[k]); }
  const std::uint8_t* high(int k) const { return reinterpret_cast<const std::uint8_t*>(cluster_.high[k]); }

  void scan(bool is_near) {
    PointBytes tables[kDimensions];
    GGUFMILL_UNROLL
    for (int k = 0; k < kDimensions; ++k) tables[k] = bounds_of_parts(k);
    alignas(64) std::uint8_t bounds[kMostBlocks];
    bound_blocks(tables, bounds);
    // The block of the seed comes first, so that the limit is low for the others.
    const int home = nearest_ / kBlock;
    if (!is_near) scan_block(tables, home);
    for (int first = 0; first < blocks(); first += kWide) {
      const PointBytes of_blocks = hn::Load(kPoints, bounds + first);
      each_set(hn::Min(of_blocks, hn::Set(kPoints, limit_)) == of_blocks, [&](int i) {
        const int block = first + i;
        if (block < blocks() && bounds[block] <= limit_ && (is_near || block != home)) scan_block(tables, block);
      });
    }
  }

  // Computes the bounds of all blocks.
  HWY_INLINE void bound_blocks(const PointBytes* tables, std::uint8_t* bounds) const {
    const hn::Repartition<std::int8_t, decltype(kWords)> signed_bytes{};
    const hn::RepartitionToWide<decltype(kPoints)> wide{};
    const auto nibble = hn::Set(kPoints, 15);
    const int stride = (blocks() + kWide - 1) / kWide * kWide;
    for (int first = 0; first < stride; first += kWide) {
      PointBytes sum = hn::Zero(kPoints);
      GGUFMILL_UNROLL
      for (int k = 0; k < kDimensions; ++k) {
        const float x = std::clamp(x_[k], -128.0f, 127.0f);
        const auto floor = hn::Set(signed_bytes, static_cast<std::int8_t>(static_cast<int>(x + 128.0f) - 128));
        const auto is_above = hn::LoadDup128(signed_bytes, cluster_.low[k]) > floor;  // whether a part is
        const auto above = hn::BitCast(kPoints, hn::VecFromMask(signed_bytes, is_above));
        const auto range = hn::LoadU(kPoints, ranges_ + k * stride + first);
        const auto last = hn::BitCast(kPoints, hn::ShiftRight<4>(hn::BitCast(wide, range)));
        const auto of_first = hn::TableLookupBytes(hn::And(tables[k], above), hn::And(range, nibble));
        const auto of_last = hn::TableLookupBytes(hn::AndNot(above, tables[k]), hn::And(last, nibble));
        sum = hn::SaturatedAdd(sum, hn::Max(of_first, of_last));
      }
      hn::Store(sum, kPoints, bounds + first);
    }
  }

  HWY_INLINE void scan_block(const PointBytes* tables, int block) {
    const hn::RepartitionToWide<decltype(kPoints)> wide{};
    const auto nibble = hn::Set(kPoints, 15);
    const std::uint8_t* const parts = parts_ + std::size_t{kBlockBytes} * static_cast<unsigned>(block);
    GGUFMILL_UNROLL
    for (int at = 0; at < kBlock; at += kWide) {
      PointBytes sum = hn::Zero(kPoints);
      GGUFMILL_UNROLL
      for (int pair = 0; pair < kDimensions / 2; ++pair) {
        const auto two = hn::LoadU(kPoints, parts + pair * kBlock + at);
        const auto high = hn::BitCast(kPoints, hn::ShiftRight<4>(hn::BitCast(wide, two)));
        const auto of_low = hn::TableLookupBytes(tables[2 * pair], hn::And(two, nibble));
        const auto of_high = hn::TableLookupBytes(tables[2 * pair + 1], hn::And(high, nibble));
        sum = hn::SaturatedAdd(sum, hn::SaturatedAdd(of_low, of_high));
      }
      each_set(hn::Min(sum, hn::Set(kPoints, limit_)) == sum, [&](int i) { compare(block * kBlock + at + i); });
    }
  }

  void compare(int number) {
    if (number >= cluster_.count) return;
    const float distance = distance_of(number);
    if (distance > least_ || (distance == least_ && !comes_before<kDimensions>(places_[number], places_[nearest_])))
      return;
    nearest_ = number;
    least_ = distance;
    set_limit();
  }

  const Cluster& cluster_;
  const std::array<std::int8_t, kDimensions>* points_;
  const std::uint16_t* places_;
  const std::uint8_t *parts_, *ranges_;
  const float *x_, *weights_;
  int nearest_ = 0;
  float least_ = 0, scale_ = 0;
  std::uint8_t limit_ = 0;
};

int ScannedBook::nearest(int number, const float* x, const float* weights, ik::TrellisHint& hint) const {
  const Cluster& cluster = clusters_[static_cast<std::size_t>(number)];
  const bool is_near = hint.place >= 0 && hint.place / kMostPoints == number;
  const int seed = is_near ? hint.place % kMostPoints : cluster.seeds[cell_of(cluster, x)];
  Search search(*this, cluster, x, weights);
  const int found = search.run(seed, is_near);
  if (found < 0) {
    hint = {};
    return book_.nearest(x, weights);
  }
  hint = {number * kMostPoints + found, search.distance()};
  return indices_[cluster.first_point + static_cast<unsigned>(found)];
}

// Reads what a search in a cluster needs first.
void ScannedBook::prefetch(int number, int hint) const {
  const Cluster& cluster = clusters_[static_cast<std::size_t>(number)];
  for (int k = 0; k < kDimensions; k += 4) {
    hwy::Prefetch(cluster.low[k]);
    hwy::Prefetch(cluster.high[k]);
  }
  if (hint >= 0 && hint / kMostPoints == number)
    hwy::Prefetch(points_[cluster.first_point + hint % kMostPoints].data());
  const int stride = (cluster.count + kBlock * kWide - 1) / (kBlock * kWide) * kWide;
  for (int i = 0; i < stride * kDimensions; i += 64) hwy::Prefetch(ranges_.data() + cluster.first_range + i);
}

bool ScannedBook::find(const ik::TrellisQuery& query, const ik::TrellisRival& rival, int* indices,
                       ik::TrellisHint* hints) const {
  constexpr int kGroups = Trial<kDimensions>::kGroups;
  int clusters[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    clusters[g] = book_.cluster_of(query.scaled + g * kDimensions);
    prefetch(clusters[g], hints[g].place);
  }
  return find_groups(*this, query, rival, clusters, indices, hints,
                     [this](int cluster, const float* x, const float* weights, ik::TrellisHint& hint) {
                       return nearest(cluster, x, weights, hint);
                     });
}

}  // namespace ggufmill::simd
