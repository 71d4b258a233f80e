#pragma once
// What is done with the rows of a slab: put together, decode once, check, encode for every encoding, check what was
// written, measure what was lost.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "pipeline/graph/run.h"
#include "pipeline/graph/slab.h"

namespace ggufmill {

// "in FILE at byte 0x1234": the block that the element at `row` and `column` comes from; empty where it is of no file.
std::string place_of_value(const Expression& expression, std::uint64_t row, std::uint64_t column);

// What a worker needs to convert tiles: kTileBytes, twice where errors are measured.
std::size_t scratch_bytes(const Plan& plan);

// Converts tile `tile` (0 <= tile < slab.tiles) of a slab whose reads are done. Different tiles may be converted at the
// same time. `scratch`: scratch_bytes(plan) of F32, the caller's own. Exit code 4, with the place, for values that are
// not finite and for values too large for the target type; 1 for a kernel that fails.
Status convert_tile(Slab& slab, std::uint32_t tile, std::span<float> scratch, const Kernels& kernels);

// Converts slabs: the CPU does it with the kernels of modules.
class Converter {
 public:
  virtual ~Converter() = default;
  // Converts all of a slab whose reads are done, and calls `done` once, maybe from another thread, maybe before it
  // returns. Errors go to the run's state.
  virtual void submit(Slab& slab, std::function<void()> done) noexcept = 0;
};

// On the calling thread, tile after tile.
std::unique_ptr<Converter> make_plain_converter(const Plan& plan, const Kernels& kernels, RunState& state);
// Tiles of all slabs in parallel, on the threads of the task arena that submit() is called in. Destroyed after its last
// slab is done.
std::unique_ptr<Converter> make_parallel_converter(const Plan& plan, const Kernels& kernels, RunState& state);

}  // namespace ggufmill
