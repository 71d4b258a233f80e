#pragma once
// Converts one block per lane back to consecutive blocks, for searches that read a single lane.

#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

// kCount values of each lane.
template <int kCount>
class LaneRows {
 public:
  // Reads from lanes: element i is at lanes[i * kLanes].
  void set(const float* lanes) {
    std::uint8_t* rows[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) rows[lane] = reinterpret_cast<std::uint8_t*>(rows_[lane]);
    lanes_to_rows(reinterpret_cast<const std::uint32_t*>(lanes), kCount, rows);
  }

  // Returns the values from element i on. A full vector can be read, although some of its values may be meaningless.
  const float* at(std::size_t lane, int i) const { return rows_[lane] + i; }

 private:
  alignas(64) float rows_[kLanes][kCount + 16] = {};
};

}  // namespace ggufmill::simd
