#pragma once
// A slab being processed, with all the memory it needs.

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
#include "pipeline/graph/metrics.h"
#include "pipeline/graph/profile.h"
#include "pipeline/io/io.h"

namespace ggufmill {

// The values of one expression for the rows of a part. If the expression is a single extent, the bytes read are the
// values; otherwise they are assembled from the bytes read.
struct PartValues {
  const Expression* expression = nullptr;
  bool is_read = false;        // true if the bytes read are the values
  std::span<std::byte> bytes;  // the values
  ReadRanges read;             // the bytes read, if values are assembled from them
};

// Rows of one step. The spans refer to the slab's memory.
struct SlabPart {
  SlabRows rows;
  const BoundStep* step = nullptr;
  PartValues values, compared;
  std::vector<std::span<std::byte>> encoded;  // one per encoding; empty for copies
  std::vector<std::span<std::byte>> plain;    // one per encoding: its rows before they are interleaved; else empty
  std::vector<std::uint64_t> checksums;       // of each encoding, once computed; only if the ledger wants them
  std::span<std::byte> long_rows;             // F32 rows, if a row does not fit into a worker's scratch
  std::span<std::byte> measured_rows;         // the same for a second set of rows, to measure errors
  std::vector<std::shared_ptr<MatrixWeights>> importance;  // one for each of the step's importances
  std::span<std::byte> chosen_rows;                        // memory in which levels are chosen, if the step has metrics

  std::uint32_t first_tile = 0;  // index among the slab's tiles
  std::uint32_t tiles = 0;       // 0: nothing to check

  // offset_in_place() returns the offset of encoding `index` within each of its places; encoded_bytes() returns its
  // bytes, which are valid after all tiles are converted.
  std::uint64_t offset_in_place(std::size_t index) const;
  // Returns what encoded_bytes() contributes to the checksum of the unit (plan/slabs.h).
  std::uint64_t checksum(const Unit& unit, std::size_t index) const;
  std::span<const std::byte> encoded_bytes(std::size_t index) const;
};

// A read of a slab.
struct SlabRead {
  const SourceFile* source = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> into;
  // True if the memory pages of `into` contain nothing else, as required by direct I/O, which reads whole pages.
  bool owns_pages = false;
};

// Some rows of a step, or small whole tensors that are adjacent in a file and read together. The engines pass a slab
// on, so it has one owner at a time. While it is being converted, several threads process its tiles, each its own rows;
// only the atomics are shared.
struct Slab {
  std::uint64_t ordinal = 0;   // slabs are numbered in the order in which they are fed
  std::uint64_t cost = 0;      // in bytes of the budget
  Profile* profile = nullptr;  // null: not wanted

  std::vector<SlabPart> parts;
  std::vector<SlabRead> reads;
  std::vector<std::shared_ptr<MatrixWeights>> weights_read;  // importance read with this slab
  Metrics::Used metrics;  // one for each of the layout's metrics; such a slab has one part
  Buffer memory;

  std::uint32_t tiles = 0;
  std::atomic<std::uint32_t> tiles_left{0};
  std::atomic<std::uint32_t> reads_left{0};
  std::atomic<std::uint32_t> writes_left{0};
  std::function<void()> converted;  // called after its last tile

  Slab* next = nullptr;  // in a list of slabs waiting for the same weights or ready to continue

  // Adds rows without any memory, and their tiles. Returns the part, until the next is added.
  SlabPart& add_part(const SlabRows& rows, const BoundStep& step);
  SlabPart& part_of(std::uint32_t tile);
};

// Makes a slab. Its memory is reserved but not touched yet; for direct I/O it is aligned like the files. `steps` are
// those of the whole plan. Fails with exit code 75 if memory is exhausted, 1 if the batch needs more than its planned
// cost (plan/slabs.h): no piece extends beyond the memory.
Result<std::unique_ptr<Slab>> make_slab(const SlabBatch& batch, std::uint64_t ordinal,
                                        const std::vector<BoundStep>& steps, ImportanceWeights& weights, bool direct);

}  // namespace ggufmill
