#pragma once
// Search for the best neighbours of many stray points at a time, with one point per lane.
//
// The errors are computed in another order than in reference::nearest_neighbour. If no other neighbour is within the
// margin of lattice_reach.h, the result is the same; else the caller has to search as the reference does.

#include "plugins/simd/lattice_search.h"
#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

template <class Space>
class NeighbourBatch {
 public:
  // Searches for one group per lane, given its place and table entry. rows_of(at) returns the group's
  // values, then its weights; `scales` and `rounded` are the scales and points of all places. Returns the lanes that
  // have a result, as bits.
  template <class RowsOf>
  HWY_INLINE unsigned run(const LatticeView<Space>& lattice, const float* scales, const std::uint32_t* at,
                          const std::uint32_t* entries, const RowsOf& rows_of, const std::uint32_t* rounded) {
    const float* rows[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      rows[lane] = rows_of(at[lane]);
      lists_[lane] = reinterpret_cast<const float*>(lattice.words + LatticeEntry(entries[lane]).first_chunk() * kStep);
    }
    const Words places = hn::LoadU(kWords, at);
    scale_ = hn::GatherIndex(kFloats, scales, as_ints(places));
    chunks_ = hn::LoadU(kWords, entries) & words(LatticeEntry::kChunks);
    prepare(rows, hn::GatherIndex(kWords, rounded, as_ints(places)));
    const std::uint32_t count = std::min(hn::GetLane(hn::MaxOfLanes(kWords, chunks_)), kMax) * kStep;
    for (std::uint32_t first = 0; first < count; first += kStep) compare(first);
    return choose_best(count);
  }

  Neighbour result(std::size_t lane) const { return {words_[lane], until_[lane]}; }

 private:
  static constexpr auto kStep = static_cast<std::uint32_t>(Points<Space>::kChunk);
  static constexpr std::uint32_t kMax = 16;  // chunks; points with more of them get no result
  static_assert(!Points<Space>::kBatches || kStep == 4);

  static Floats lanes_of(const float* vectors, int i) {
    return hn::Load(kFloats, vectors + i * static_cast<int>(kLanes));
  }

  // With weights w, values c of the rounded point, v = c + d and e = s c - x: the error of v, less that of c, is the
  // sum of w s d (s d + 2 e).
  HWY_INLINE void prepare(const float* const* rows, Words rounded) {
    alignas(64) float values[2 * Space::kDims * kLanes];
    rows_to_lanes(rows, 2 * Space::kDims, values);
    Floats error = floats(0), squares = floats(0);
    for (int i = 0; i < Space::kDims; ++i) {
      const Floats x = lanes_of(values, i), weight = lanes_of(values, Space::kDims + i);
      value_[i] = odd_value<Space>(rounded, i);
      const Floats beside = scale_ * value_[i] - x;
      const Floats scaled = weight * scale_;
      of_square_[i] = scaled * scale_;
      of_value_[i] = (scaled + scaled) * beside;
      error = error + weight * beside * beside;
      squares = squares + of_square_[i];
    }
    base_ = error + squares;
  }

  // Computes the errors of one chunk.
  HWY_INLINE void compare(std::uint32_t first) {
    const Mask in_list = mask_of(chunks_ > words(first / kStep));
    Floats points[4] = {load_parts(kFloats, lists_, first), load_parts(kFloats, lists_ + 1, first),
                        load_parts(kFloats, lists_ + 2, first), load_parts(kFloats, lists_ + 3, first)};
    transpose_parts(points[0], points[1], points[2], points[3]);
    GGUFMILL_UNROLL
    for (std::uint32_t n = 0; n < 4; ++n) {
      const Words point = as_words(points[n]);
      Floats square = floats(0), error = floats(0);
      GGUFMILL_UNROLL
      for (int i = 0; i < Space::kDims; ++i) {
        const Floats value = odd_value<Space>(point, i);
        const Floats difference = value - value_[i];
        error = hn::MulAdd(hn::MulAdd(of_square_[i], difference, of_value_[i]), difference, error);
        square = hn::MulAdd(of_square_[i] * value, value, square);
      }
      const std::size_t to = (first + n) * kLanes;
      hn::Store(choose(in_list, error, floats(FLT_MAX)), kFloats, errors_ + to);
      hn::Store(square, kFloats, squares_ + to);
      hn::Store(point, kWords, points_ + to);
    }
  }

  HWY_INLINE unsigned choose_best(std::uint32_t count) {
    Floats least = hn::Load(kFloats, errors_), own_square = hn::Load(kFloats, squares_);
    Words own = hn::Load(kWords, points_);
    for (std::size_t at = kLanes; at < count * kLanes; at += kLanes) {
      const Floats error = hn::Load(kFloats, errors_ + at);
      const Mask nearer = error < least;
      least = hn::Min(error, least);
      own_square = choose(nearer, hn::Load(kFloats, squares_ + at), own_square);
      own = choose(nearer, hn::Load(kWords, points_ + at), own);
    }
    const ReachBounds bounds(least, base_ + hn::Abs(least), own_square);
    const Floats none = floats(FLT_MAX);
    Floats reach = none;
    for (std::size_t at = 0; at < count * kLanes; at += kLanes) {
      const Floats bound = bounds.beside(hn::Load(kFloats, errors_ + at), hn::Load(kFloats, squares_ + at));
      reach = hn::Min(reach, choose(mask_of(hn::Load(kWords, points_ + at) == own), none, bound));
    }
    hn::Store(own, kWords, words_);
    hn::Store(lowest_scale(scale_, reach), kFloats, until_);
    return mask_bits(hn::And(reach > floats(0), mask_of(chunks_ < words(kMax + 1))));
  }

  const float* lists_[kLanes];
  Words chunks_;
  Floats scale_, base_;
  Floats value_[Space::kDims], of_square_[Space::kDims], of_value_[Space::kDims];
  alignas(64) float until_[kLanes];
  alignas(64) std::uint32_t words_[kLanes];
  alignas(64) float errors_[kMax * kStep * kLanes], squares_[kMax * kStep * kLanes];
  alignas(64) std::uint32_t points_[kMax * kStep * kLanes];
};

}  // namespace ggufmill::simd
