#include "plugins/ik/simd/scanned_book.h"

#include <algorithm>
#include <bit>

#include "plugins/ik/simd/trellis_values.h"
#include "plugins/simd/bytes.h"
#include "plugins/simd/spread.h"

namespace ggufmill::simd {
namespace {

constexpr hn::Repartition<std::uint8_t, decltype(kWords)> kPoints{};  // a byte for each point or block
using PointBytes = hn::Vec<decltype(kPoints)>;

constexpr float kUnits = 240;  // of the best distance; sums saturate above it

// Returns the weighted squared distance of a point of the book, added in the order of a register's halves. Its values
// are computed, because that takes less time than reading them: a book does not fit into the fastest cache.
template <class D = hn::CappedTag<float, 8>>
HWY_INLINE float distance(std::uint32_t index, bool is_magnitude, const float* x, const float* weights) {
  const D floats;
  const hn::RebindToUnsigned<decltype(floats)> words;
  const hn::Full128<float> four;
  constexpr int kStep = static_cast<int>(hn::MaxLanes(floats));
  const auto first = hn::Set(words, index + ik::kTrellisOffset);
  const auto signs = hn::Set(words, is_magnitude ? 0x7fffffff : 0xffffffff);
  const auto terms = [&](int k) {
    const auto value = hn::ConvertTo(floats, trellis_values<ScannedBook::kDimensions>(words, first, k));
    const auto off = hn::And(value, hn::BitCast(floats, signs)) - hn::LoadU(floats, x + k);
    return hn::LoadU(floats, weights + k) * (off * off);
  };
  auto sums = hn::Zero(four);
  if constexpr (kStep == 8) {
    const auto eight = terms(0);
    sums = hn::LowerHalf(four, eight) + hn::UpperHalf(four, eight);
  } else {
    sums = terms(0) + terms(4);
  }
  const auto two = sums + hn::ConcatUpperUpper(four, sums, sums);
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

// Returns the size of an array of bytes for blocks that is read in whole vectors.
constexpr std::size_t stride_of(int blocks) { return static_cast<std::size_t>((blocks + kWide - 1) / kWide * kWide); }

}  // namespace

ScannedBook::ScannedBook(const ik::TrellisBook<kDimensions>& book)
    : book_(book), clusters_(static_cast<std::size_t>(book.kClusters)) {
  for (int number = 0; number < book.kClusters; ++number) add(number);
}

void ScannedBook::add(int number) {
  Cluster& cluster = clusters_[static_cast<std::size_t>(number)];
  const OrderedPoints<kDimensions> ordered(book_, number, kBlock);
  cluster.count = static_cast<std::int32_t>(ordered.points.size());
  divide(ordered.points, cluster);
  add_blocks(ordered, cluster);
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

void ScannedBook::add_blocks(const OrderedPoints<kDimensions>& ordered, Cluster& cluster) {
  const std::size_t count = ordered.points.size(), stride = stride_of(cluster.blocks());
  cluster.first_block = static_cast<std::uint32_t>(blocks_.size());
  blocks_.resize(blocks_.size() + static_cast<std::size_t>(cluster.blocks()));
  cluster.first_range = static_cast<std::uint32_t>(ranges_.size());
  ranges_.resize(ranges_.size() + stride * kDimensions, 15);  // from the last part to the first one
  std::uint8_t* const ranges = ranges_.data() + cluster.first_range;
  for (std::size_t at = 0; at < (count + kBlock - 1) / kBlock * kBlock; ++at) {
    const std::size_t i = std::min(at, count - 1);  // the last block is filled up with its last point
    Block& block = blocks_[cluster.first_block + at / kBlock];
    block.indices[at % kBlock] = ordered.indices[i];
    places_.push_back(ordered.places[i]);
    for (std::size_t k = 0; k < kDimensions; ++k) {
      unsigned part = 0;
      while (ordered.points[i][k] > cluster.high[k][part]) ++part;
      std::uint8_t& byte = block.parts[k / 2][at % kBlock];
      byte = static_cast<std::uint8_t>(byte | part << (4 * (k % 2)));
      std::uint8_t& range = ranges[k * stride + i / kBlock];
      range = static_cast<std::uint8_t>(std::min(range & 15u, part) | std::max(range / 16u, part) << 4);
    }
  }
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
  Search(const ScannedBook& book, int number)
      : book_(book),
        cluster_(book.clusters_[static_cast<std::size_t>(number)]),
        blocks_(book.blocks_.data() + cluster_.first_block),
        ranges_(book.ranges_.data() + cluster_.first_range),
        number_(number),
        is_magnitude_(book.book_.is_magnitude()) {}

  // Returns the index of the point nearest to x, and sets the hint.
  int nearest(const float* x, const float* weights, ik::TrellisHint& hint) {
    x_ = x;
    weights_ = weights;
    find_floors();
    const bool is_near = hint.place >= 0 && hint.place / kMaxPoints == number_;
    nearest_ = is_near ? hint.place % kMaxPoints : cluster_.seeds[cell()];
    least_ = distance_of(nearest_);
    // If the first point is not near, the units are chosen for half its distance.
    if (in_range(least_)) scan(is_near ? least_ : 0.5f * least_);
    while (in_range(least_) && least_ * scale_ >= kUnits + 1) scan(least_);
    if (!in_range(least_)) {  // too great or too small for the bounds
      hint = {};
      return book_.book_.nearest(x, weights);
    }
    hint.place = number_ * kMaxPoints + nearest_;
    return index_of(nearest_);
  }

 private:
  static bool in_range(float distance) { return distance > 1e-25f && distance < 1e25f; }

  int index_of(int number) const { return blocks_[number / kBlock].indices[number % kBlock]; }
  float distance_of(int number) const {
    return simd::distance(static_cast<std::uint32_t>(index_of(number)), is_magnitude_, x_, weights_);
  }
  void set_limit() { limit_ = static_cast<std::uint8_t>(std::min(least_ * scale_, kUnits) + 1); }

  // Rounds x down.
  void find_floors() {
    const hn::CappedTag<float, 8> some;
    const hn::Rebind<std::int8_t, decltype(some)> bytes;
    const hn::RebindToSigned<decltype(some)> ints;
    for (int k = 0; k < kDimensions; k += static_cast<int>(hn::MaxLanes(some))) {
      const auto x = hn::Min(hn::Max(hn::LoadU(some, x_ + k), hn::Set(some, -128)), hn::Set(some, 127));
      hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(ints, hn::Floor(x))), bytes, floors_ + k);
    }
  }
  int cell() const {
    const hn::CappedTag<std::int8_t, 8> eight;
    return static_cast<int>(mask_bits(eight, hn::LoadU(eight, floors_) > hn::LoadU(eight, cluster_.middle)));
  }

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

  // Computes the bounds of all blocks.
  HWY_INLINE void bound_blocks(const PointBytes* tables) {
    const hn::Repartition<std::int8_t, decltype(kWords)> signed_bytes{};
    const hn::RepartitionToWide<decltype(kPoints)> wide{};
    const auto nibble = hn::Set(kPoints, 15);
    const int stride = static_cast<int>(stride_of(cluster_.blocks()));
    for (int first = 0; first < stride; first += kWide) {
      PointBytes sum = hn::Zero(kPoints);
      GGUFMILL_UNROLL
      for (int k = 0; k < kDimensions; ++k) {
        const auto floor = hn::Set(signed_bytes, floors_[k]);
        const auto is_above = hn::LoadDup128(signed_bytes, cluster_.low[k]) > floor;  // whether a part is
        const auto above = hn::BitCast(kPoints, hn::VecFromMask(signed_bytes, is_above));
        const auto range = hn::LoadU(kPoints, ranges_ + k * stride + first);
        const auto last = hn::BitCast(kPoints, hn::ShiftRight<4>(hn::BitCast(wide, range)));
        const auto of_first = hn::TableLookupBytes(hn::And(tables[k], above), hn::And(range, nibble));
        const auto of_last = hn::TableLookupBytes(hn::AndNot(above, tables[k]), hn::And(last, nibble));
        sum = hn::SaturatedAdd(sum, hn::Max(of_first, of_last));
      }
      hn::Store(sum, kPoints, bounds_ + first);
    }
  }

  // Compares the points that may be nearest, with bounds in units of `units_for` / kUnits. The block of the best point
  // so far comes first, so that the limit is low for the others.
  void scan(float units_for) {
    scale_ = kUnits / units_for;
    set_limit();
    PointBytes tables[kDimensions];
    GGUFMILL_UNROLL
    for (int k = 0; k < kDimensions; ++k) tables[k] = bounds_of_parts(k);
    bound_blocks(tables);
    slots_ = 0;
    const int home = nearest_ / kBlock;
    PointBytes least = bound_points(tables, home);
    compare_least(least);
    for (int first = 0; first < cluster_.blocks(); first += 64) {
      std::uint64_t blocks = near_blocks(first);
      if (home / 64 == first / 64) blocks &= ~(std::uint64_t{1} << (home % 64));
      for (; blocks != 0; blocks &= blocks - 1)
        least = hn::Min(least, bound_points(tables, first + std::countr_zero(blocks)));
    }
    compare_least(least);
    compare_near();
  }

  // Returns bit i for block number first + i if its bound does not exceed the limit.
  std::uint64_t near_blocks(int first) const {
    const std::uint64_t bits = near_bits(bounds_ + first);
    const int count = cluster_.blocks() - first;
    return count < 64 ? bits & ((std::uint64_t{1} << count) - 1) : bits;
  }
  // Returns bit i for byte i of 64 if it does not exceed the limit.
  HWY_INLINE std::uint64_t near_bits(const std::uint8_t* bounds) const {
    std::uint64_t bits = 0;
    GGUFMILL_UNROLL
    for (int at = 0; at < 64; at += kWide) {
      const auto some = hn::Load(kPoints, bounds + at);
      bits |= mask_bits(kPoints, hn::Min(some, hn::Set(kPoints, limit_)) == some) << at;
    }
    return bits;
  }

  // Stores the bounds of the points of a block. Returns vectors of them whose least bytes are the least ones.
  HWY_INLINE PointBytes bound_points(const PointBytes* tables, int number) {
    const hn::RepartitionToWide<decltype(kPoints)> wide{};
    const auto nibble = hn::Set(kPoints, 15);
    PointBytes least = hn::Set(kPoints, 255);
    GGUFMILL_UNROLL
    for (int at = 0; at < kBlock; at += kWide) {
      PointBytes sum = hn::Zero(kPoints);
      GGUFMILL_UNROLL
      for (int pair = 0; pair < kDimensions / 2; ++pair) {
        const auto two = hn::Load(kPoints, blocks_[number].parts[pair] + at);
        const auto high = hn::BitCast(kPoints, hn::ShiftRight<4>(hn::BitCast(wide, two)));
        const auto of_low = hn::TableLookupBytes(tables[2 * pair], hn::And(two, nibble));
        const auto of_high = hn::TableLookupBytes(tables[2 * pair + 1], hn::And(high, nibble));
        sum = hn::SaturatedAdd(sum, hn::SaturatedAdd(of_low, of_high));
      }
      hn::Store(sum, kPoints, point_bounds_[slots_] + at);
      least = hn::Min(least, sum);
    }
    slot_blocks_[slots_++] = static_cast<std::uint8_t>(number);
    return least;
  }

  // Compares one point with the least bound, which is the least one of `bytes`. The point is likely to be near.
  void compare_least(PointBytes bytes) {
    const Words pairs =
        hn::BitCast(kWords, hn::Min(bytes, hn::BitCast(kPoints, hn::ShiftRight<16>(hn::BitCast(kWords, bytes)))));
    const auto low = hn::Min(hn::BitCast(kPoints, pairs), hn::BitCast(kPoints, hn::ShiftRight<8>(pairs)));
    const Words each = hn::BitCast(kWords, low) & words(255);
    const auto least = hn::Set(kPoints, static_cast<std::uint8_t>(hn::GetLane(hn::MinOfLanes(kWords, each))));
    for (int slot = 0; slot < slots_; ++slot) {
      std::uint64_t bits = 0;
      GGUFMILL_UNROLL
      for (int at = 0; at < kBlock; at += kWide)
        bits |= mask_bits(kPoints, hn::Load(kPoints, point_bounds_[slot] + at) == least) << at;
      if (bits == 0) continue;
      compare(slot_blocks_[slot] * kBlock + std::countr_zero(bits));
      return;
    }
  }

  // Compares all points whose bounds do not exceed the limit.
  void compare_near() {
    std::uint16_t near[kMaxPoints + 1];  // numbers of points; add() writes one more
    int count = 0;
    for (int slot = 0; slot < slots_; ++slot) {
      std::uint64_t bits = near_bits(point_bounds_[slot]);
      const auto add = [&] {
        near[count] = static_cast<std::uint16_t>(slot_blocks_[slot] * kBlock + std::countr_zero(bits));
        count += bits != 0;
        bits &= bits - 1;
      };
      add();  // no branch depends on whether there is one
      while (HWY_UNLIKELY(bits != 0)) add();
    }
    for (int i = 0; i < count; ++i) compare(near[i]);
  }

  void compare(int number) {
    if (number >= cluster_.count || number == nearest_) return;
    const float distance = distance_of(number);
    if (distance > least_) return;
    if (distance == least_ && !comes_before<kDimensions>(place_of(number), place_of(nearest_))) return;
    nearest_ = number;
    least_ = distance;
    set_limit();
  }

  // Returns the place of a point in the list of the cluster.
  int place_of(int number) const {
    return book_.places_[std::size_t{cluster_.first_block} * kBlock + static_cast<unsigned>(number)];
  }

  const ScannedBook& book_;
  const Cluster& cluster_;
  const Block* const blocks_;
  const std::uint8_t* const ranges_;
  const int number_;
  const bool is_magnitude_;
  const float *x_ = nullptr, *weights_ = nullptr;
  int nearest_ = 0;
  float least_ = 0, scale_ = 0;
  std::uint8_t limit_ = 0;
  std::int8_t floors_[kDimensions] = {};
  alignas(64) std::uint8_t bounds_[kMaxBlocks];  // one for each block
  int slots_ = 0;
  std::uint8_t slot_blocks_[kMaxBlocks];                       // numbers of the blocks in slots
  alignas(64) std::uint8_t point_bounds_[kMaxBlocks][kBlock];  // by slot
};

int ScannedBook::cluster_of(const ik::TrellisSearch& search, std::size_t group) const {
  const hn::CappedTag<float, 8> some;
  constexpr std::size_t kStep = hn::MaxLanes(some);
  unsigned number = 0;
  for (std::size_t k = 0; k < kDimensions; k += kStep) {
    const auto x = hn::Set(some, search.inverse) * hn::LoadU(some, search.x + group * kDimensions + k);
    number |= static_cast<unsigned>(mask_bits(some, x > hn::LoadU(some, book_.middle().data() + k))) << k;
  }
  return static_cast<int>(number);
}

// Searches the groups of all sub-blocks in the order of their clusters.
void ScannedBook::find(std::span<const ik::TrellisSearch> searches) const {
  constexpr std::size_t kGroups = ik::TrellisQuery::kSubBlock / kDimensions, kClusters = ik::TrellisBook<8>::kClusters;
  const std::size_t count = searches.size() * kGroups;
  std::vector<std::uint8_t> numbers(count);  // the cluster of each group
  std::size_t places[kClusters] = {};        // counts of groups, then where each cluster ends, then where it begins
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<std::uint8_t>(cluster_of(searches[i / kGroups], i % kGroups));
    ++places[numbers[i]];
  }
  std::partial_sum(places, places + kClusters, places);
  std::vector<std::uint32_t> order(count);
  for (std::size_t i = count; i-- != 0;) order[--places[numbers[i]]] = static_cast<std::uint32_t>(i);
  for (std::size_t at = 0; at < count;) {
    const std::uint8_t number = numbers[order[at]];
    const std::size_t end = number + 1u < kClusters ? places[number + 1u] : count;
    Search search(*this, number);
    const float* last = nullptr;
    ik::TrellisHint last_hint;
    for (; at < end; ++at) {
      const ik::TrellisSearch& each = searches[order[at] / kGroups];
      const std::size_t group = order[at] % kGroups;
      const float *const x = each.x + group * kDimensions, *const weights = each.weights + group * kDimensions;
      float scaled[kDimensions];
      for (int k = 0; k < kDimensions; ++k) scaled[k] = each.inverse * x[k];
      ik::TrellisHint& hint = each.hints[group];
      if (x == last) hint = last_hint;  // the same values with another scale
      each.indices[group] = search.nearest(scaled, weights, hint);
      last = x;
      last_hint = hint;
    }
  }
}

}  // namespace ggufmill::simd
