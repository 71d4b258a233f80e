#pragma once
// Moves stray points of many lanes to their best neighbours.

#include <bit>

#include "plugins/simd/compress.h"
#include "plugins/simd/lattice_batch.h"
#include "plugins/simd/lattice_steps.h"

namespace ggufmill::simd {

// Writes the best neighbour of point_of(lane) to nearest[lane] for each lane in `stray`. Returns false if a point has
// no such neighbour (reference::kNoBookPoint).
template <class Space, class PointOf>
HWY_INLINE bool find_neighbours(const LatticeView<Space>& lattice, Mask stray, const PointOf& point_of,
                                std::uint32_t* nearest) {
  for (unsigned lanes = mask_bits(stray); lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
    Neighbour found;
    if (!nearest_point<false>(lattice, point_of(lane), found)) return false;
    nearest[lane] = found.word;
  }
  return true;
}

// The points of kSize groups, and the lowest scales at which they need no new search.
template <std::size_t kSize>
struct GroupPoints {
  void set(std::size_t at, const Neighbour& found) { words[at] = found.word, until[at] = found.until; }

  alignas(64) std::uint32_t words[kSize];
  alignas(64) float until[kSize];
};

// Those of kSize groups that have to be looked up in the book.
template <class Space, std::size_t kSize>
class ChangedGroups {
 public:
  void clear() { count_ = special_count_ = 0; }

  // Adds the lanes of a group with these codes. `special` ones are left to the reference.
  HWY_INLINE void add(int group, Words codes, Mask lanes, Mask special) {
    const Words at = hn::Iota(kWords, static_cast<std::uint32_t>(group) * kStep);
    count_ += append_lanes(mask_bits(lanes), at, at_ + count_, codes, codes_ + count_);
    const auto first = static_cast<std::uint32_t>(group) * kStep;
    for (unsigned left = mask_bits(special); HWY_UNLIKELY(left != 0); left &= left - 1)
      special_[special_count_++] = first + static_cast<std::uint32_t>(std::countr_zero(left));
  }

  // Writes the book points of all groups added. rows_of(at) returns LatticeInput::group_x(at); as_reference(at) moves a
  // group as the reference does, and returns false if it cannot. In this case, this function also returns false.
  template <class RowsOf, class AsReference>
  HWY_INLINE bool place(const LatticeView<Space>& lattice, const float* scales, const RowsOf& rows_of,
                        const AsReference& as_reference, GroupPoints<kSize>& placed) {
    look_up(lattice, placed);
    for (std::size_t i = 0; i < special_count_; ++i)
      if (!as_reference(special_[i])) return false;
    if constexpr (kTakesSteps)
      if (!place_steps(scales, rows_of, as_reference, placed)) return false;
    if constexpr (Points<Space>::kBatches)
      return place_batches(lattice, scales, rows_of, as_reference, placed);
    else
      return place_each(lattice, scales, rows_of, placed);
  }

 private:
  static constexpr auto kStep = static_cast<std::uint32_t>(kLanes);
  // For batches, the points are in order of their chunks: one, two, or more.
  static constexpr std::uint32_t kKinds = Points<Space>::kBatches ? 3 : 1;
  static constexpr std::size_t kRoom = kSize + kLanes;
  static constexpr bool kTakesSteps = Space::kLevels == 3;

  // Writes all points as if they were in the book, and lists those that are not.
  HWY_INLINE void look_up(const LatticeView<Space>& lattice, GroupPoints<kSize>& placed) {
    for (std::size_t& count : stray_counts_) count = 0;
    step_count_ = 0;
    hn::StoreU(words(0), kWords, codes_ + count_);
    for (std::size_t first = 0; first < count_; first += kLanes) {
      const Words codes = hn::Load(kWords, codes_ + first);
      alignas(64) std::uint32_t points[kLanes];
      hn::Store(hn::GatherIndex(kWords, lattice.points, as_ints(codes)), kWords, points);
      const std::size_t used = std::min(count_ - first, kLanes);
      for (std::size_t i = 0; i < used; ++i) placed.set(at_[first + i], {points[i], 0});
      const Words entries = hn::GatherIndex(kWords, lattice.entries, as_ints(codes));
      const Words chunks = entries & words(LatticeEntry::kChunks);
      Mask in_use = mask_of(hn::Iota(kWords, 0) < words(static_cast<std::uint32_t>(used)));
      if constexpr (kTakesSteps) {
        const Mask steps = mask_of(chunks == words(LatticeEntry::kSteps));
        step_count_ += append_lanes(mask_bits(hn::And(in_use, steps)), hn::Load(kWords, at_ + first),
                                    step_at_ + step_count_, entries, step_entries_ + step_count_);
        in_use = hn::AndNot(steps, in_use);
      }
      for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
        const Mask is_kind = mask_of(kind + 1 < kKinds ? chunks == words(kind + 1) : chunks > words(kind));
        const unsigned lanes = mask_bits(hn::And(in_use, is_kind));
        std::size_t& count = stray_counts_[kind];
        count += append_lanes(lanes, hn::Load(kWords, at_ + first), stray_at_[kind] + count, entries,
                              stray_entries_[kind] + count);
      }
    }
  }

  template <class RowsOf>
  HWY_INLINE bool place_each(const LatticeView<Space>& lattice, const float* scales, const RowsOf& rows_of,
                             GroupPoints<kSize>& placed) {
    for (std::size_t i = 0; i < stray_counts_[0]; ++i) {
      const std::uint32_t at = stray_at_[0][i];
      const float* row = rows_of(at);
      const StrayPoint point{row, row + Space::kDims, kOddValues<Space>, scales[at],
                             LatticeEntry(stray_entries_[0][i])};
      Neighbour nearest;
      if (!nearest_point<true>(lattice, point, nearest)) return false;
      placed.set(at, nearest);
    }
    return true;
  }

  template <class RowsOf, class AsReference>
  HWY_INLINE bool place_steps(const float* scales, const RowsOf& rows_of, const AsReference& as_reference,
                              GroupPoints<kSize>& placed) {
    if (step_count_ == 0) return true;
    return place_all<StepBatch<Space>>(step_at_, step_entries_, step_count_, as_reference, placed,
                                       [&](auto& batch, const std::uint32_t* at, const std::uint32_t* entries) {
                                         return batch.run(scales, at, entries, rows_of, placed.words);
                                       });
  }

  template <class RowsOf, class AsReference>
  HWY_INLINE bool place_batches(const LatticeView<Space>& lattice, const float* scales, const RowsOf& rows_of,
                                const AsReference& as_reference, GroupPoints<kSize>& placed) {
    std::size_t count = stray_counts_[0];
    for (std::uint32_t kind = 1; kind < kKinds; ++kind) {
      for (std::size_t i = 0; i < stray_counts_[kind]; i += kLanes) {
        hn::StoreU(hn::LoadU(kWords, stray_at_[kind] + i), kWords, stray_at_[0] + count + i);
        hn::StoreU(hn::LoadU(kWords, stray_entries_[kind] + i), kWords, stray_entries_[0] + count + i);
      }
      count += stray_counts_[kind];
    }
    if (count == 0) return true;
    return place_all<NeighbourBatch<Space>>(stray_at_[0], stray_entries_[0], count, as_reference, placed,
                                            [&](auto& batch, const std::uint32_t* at, const std::uint32_t* entries) {
                                              return batch.run(lattice, scales, at, entries, rows_of, placed.words);
                                            });
  }

  // Writes the book points of `count` groups. run(batch, at, entries) searches for a vector of them. Repeats the last
  // one to fill the last vector.
  template <class Batch, class AsReference, class Run>
  HWY_INLINE bool place_all(std::uint32_t* at, std::uint32_t* entries, std::size_t count,
                            const AsReference& as_reference, GroupPoints<kSize>& placed, const Run& run) {
    hn::StoreU(words(at[count - 1]), kWords, at + count);
    hn::StoreU(words(entries[count - 1]), kWords, entries + count);
    Batch batch;
    for (std::size_t first = 0; first < count; first += kLanes) {
      const std::size_t used = std::min(count - first, kLanes);
      unsigned settled = run(batch, at + first, entries + first);
      for (std::size_t i = 0; i < used; ++i) placed.set(at[first + i], batch.result(i));
      settled |= ~0u << used;
      for (unsigned open = ~settled; open != 0; open &= open - 1)
        if (!as_reference(at[first + static_cast<std::size_t>(std::countr_zero(open))])) return false;
    }
    return true;
  }

  std::size_t count_ = 0, special_count_ = 0, stray_counts_[kKinds], step_count_;
  alignas(64) std::uint32_t at_[kRoom];  // group * kLanes + lane
  alignas(64) std::uint32_t codes_[kRoom];
  std::uint32_t special_[kSize];
  alignas(64) std::uint32_t stray_at_[kKinds][2 * kRoom];
  alignas(64) std::uint32_t stray_entries_[kKinds][2 * kRoom];
  alignas(64) std::uint32_t step_at_[2 * kRoom];
  alignas(64) std::uint32_t step_entries_[2 * kRoom];
};

}  // namespace ggufmill::simd
