#pragma once
// From one block a lane back to one block after the other, for what a search reads of a single lane.

#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

// kCount values of each lane.
template <int kCount>
class LaneRows {
 public:
  // From lanes: element i at lanes[i * kLanes].
  void set(const float* lanes) {
    std::uint8_t* rows[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) rows[lane] = reinterpret_cast<std::uint8_t*>(rows_[lane]);
    lanes_to_rows(reinterpret_cast<const std::uint32_t*>(lanes), kCount, rows);
  }

  // From element i on; a whole vector can be read, though not all of it means something.
  const float* at(std::size_t lane, int i) const { return rows_[lane] + i; }

 private:
  alignas(64) float rows_[kLanes][kCount + 16] = {};
};

}  // namespace ggufmill::simd
