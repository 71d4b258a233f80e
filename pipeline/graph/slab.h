#pragma once
// A slab while it is worked on, with all the memory it needs.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/graph/assemble.h"
#include "pipeline/graph/bind.h"
#include "pipeline/graph/feed.h"
#include "pipeline/graph/importance_weights.h"
#include "pipeline/graph/profile.h"
#include "pipeline/io/io.h"

namespace ggufmill {

// Values of one expression for the rows of a part. Where it is one extent, what is read are the values; else they are
// put together from it.
struct PartValues {
  const Expression* expression = nullptr;
  bool is_read = false;        // the values are what is read
  std::span<std::byte> bytes;  // the values
  ReadRanges read;             // where they are put together
};

// Rows of one step. Spans are of the slab's memory.
struct SlabPart {
  SlabRows rows;
  const BoundStep* step = nullptr;
  PartValues values, compared;
  std::vector<std::span<std::byte>> encoded;               // one for each encoding; empty where it is a copy
  std::vector<std::uint64_t> checksums;                    // of these, once they are made; where the ledger wants them
  std::span<std::byte> long_rows;                          // F32, where a row does not fit into a worker's scratch
  std::span<std::byte> measured_rows;                      // the same, of a second row beside it
  std::vector<std::shared_ptr<MatrixWeights>> importance;  // one for each of the step's importances

  std::uint32_t first_tile = 0;  // of the slab's
  std::uint32_t tiles = 0;       // 0: there is nothing to look at

  // Where the bytes of encoding `index` go within a place, and what goes there once all tiles are converted.
  std::uint64_t offset_in_place(std::size_t index) const;
  // What encoded_bytes() add to the checksum of their unit (plan/slabs.h).
  std::uint64_t checksum(const Unit& unit, std::size_t index) const;
  std::span<const std::byte> encoded_bytes(std::size_t index) const;
};

// One read of a slab.
struct SlabRead {
  const SourceFile* source = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> into;
  // The memory pages that `into` lies in hold nothing else. Direct I/O, which reads whole pages, needs that.
  bool owns_pages = false;
};

// Some rows of a step; or small whole tensors that lie side by side in a file and are read at once. The engines hand a
// slab from one to the next, so that it has one owner at a time; between, tiles of it are converted by several threads,
// each on rows of its own. Only the atomics are shared.
struct Slab {
  std::uint64_t ordinal = 0;   // the slabs of a run are numbered in the order they are fed
  std::uint64_t cost = 0;      // of the budget
  Profile* profile = nullptr;  // null: not wanted

  std::vector<SlabPart> parts;
  std::vector<SlabRead> reads;
  std::vector<std::shared_ptr<MatrixWeights>> weights_read;  // importance that comes with its reads
  Buffer memory;

  std::uint32_t tiles = 0;
  std::atomic<std::uint32_t> tiles_left{0};
  std::atomic<std::uint32_t> reads_left{0};
  std::atomic<std::uint32_t> writes_left{0};
  std::function<void()> converted;  // to be called after its last tile

  Slab* next = nullptr;  // in a list of slabs that wait for the same, or that can go on

  SlabPart& part_of(std::uint32_t tile);
};

// The memory is reserved, not yet touched; for direct I/O it lies as the files do. `steps`: of all the plan. Exit code
// 75 when there is no memory, 1 when the batch costs more than planned (plan/slabs.h): no piece goes beyond the memory.
Result<std::unique_ptr<Slab>> make_slab(const SlabBatch& batch, std::uint64_t ordinal,
                                        const std::vector<BoundStep>& steps, ImportanceWeights& weights, bool direct);

}  // namespace ggufmill
