#pragma once
// A slab on its way from the source to the outputs, with all the memory it needs.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/graph/profile.h"
#include "pipeline/graph/work.h"
#include "pipeline/io/io.h"

namespace ggufmill {

// The engines hand a flight from step to step, so that it has one owner at a time; between, tiles of it are converted
// by several threads, each on rows of its own. Only the atomics are shared.
struct Flight {
  Slab slab;
  std::uint64_t ordinal = 0;  // the slabs of a run are numbered in the order they are fed
  const RouteWork* work = nullptr;
  Profile* profile = nullptr;  // null: not wanted

  Buffer source;
  std::vector<Buffer> outputs;                 // one for each target; empty where it is carried
  Buffer long_rows;                            // F32, where a row does not fit into a worker's scratch
  Buffer measured_rows;                        // the same, of what was encoded and is decoded again
  std::vector<std::vector<float>> importance;  // of the slab's matrix, one for each of work->importances

  std::uint32_t tiles = 0;  // 0: nothing is to be changed
  std::atomic<std::uint32_t> tiles_left{0};
  std::atomic<std::uint32_t> writes_left{0};

  // Where target `index` of this slab goes, and what goes there once all tiles are converted.
  std::uint64_t target_offset(std::size_t index) const;
  std::span<const std::byte> target_bytes(std::size_t index) const;
};

// The memory is reserved, not yet touched; for direct I/O it lies as the files do. Exit code 75 when there is none.
Result<std::unique_ptr<Flight>> make_flight(const Slab& slab, std::uint64_t ordinal, const RouteWork& work,
                                            bool direct);

}  // namespace ggufmill
