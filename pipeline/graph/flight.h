#pragma once
// Slabs on their way from the source to the outputs, with all the memory they need.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/graph/profile.h"
#include "pipeline/graph/slab_feed.h"
#include "pipeline/graph/work.h"
#include "pipeline/io/io.h"

namespace ggufmill {

// One slab of a flight. Spans are of the flight's memory.
struct Leg {
  Slab slab;
  const RouteWork* work = nullptr;

  std::span<std::byte> source;
  std::vector<std::span<std::byte>> outputs;   // one for each target; empty where it is carried
  std::span<std::byte> long_rows;              // F32, where a row does not fit into a worker's scratch
  std::span<std::byte> measured_rows;          // the same, of what was encoded and is decoded again
  std::vector<std::vector<float>> importance;  // of the slab's matrix, one for each of work->importances

  std::uint32_t first_tile = 0;  // of the flight's
  std::uint32_t tiles = 0;       // 0: nothing is to be changed

  // Where target `index` of this slab goes, and what goes there once all tiles are converted.
  std::uint64_t target_offset(std::size_t index) const;
  std::span<const std::byte> target_bytes(std::size_t index) const;
};

// One slab, or several that are read at once. The engines hand a flight from step to step, so that it has one owner at
// a time; between, tiles of it are converted by several threads, each on rows of its own. Only the atomics are shared.
struct Flight {
  std::uint64_t ordinal = 0;   // the flights of a run are numbered in the order they are fed
  std::uint64_t cost = 0;      // of the budget
  Profile* profile = nullptr;  // null: not wanted

  std::vector<Leg> legs;
  Buffer memory;
  std::span<std::byte> source;      // of all legs, as they lie in the file
  std::uint64_t source_offset = 0;  // in the file

  std::uint32_t tiles = 0;
  std::atomic<std::uint32_t> tiles_left{0};
  std::atomic<std::uint32_t> writes_left{0};

  Leg& leg_of(std::uint32_t tile);
};

// The memory is reserved, not yet touched; for direct I/O it lies as the files do. `works`: of all routes. Exit code 75
// when there is no memory.
Result<std::unique_ptr<Flight>> make_flight(const SlabBatch& batch, std::uint64_t ordinal,
                                            const std::vector<RouteWork>& works, bool direct);

}  // namespace ggufmill
