#pragma once
// Converts the rows of a slab: assembles them, decodes them once, checks them, encodes them for every encoding, checks
// the encoded blocks and measures the errors.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "pipeline/graph/run.h"
#include "pipeline/graph/slab.h"

namespace ggufmill {

// Returns "in FILE at byte 0x1234" for the block that the element at `row` and `column` comes from; empty if it comes
// from no file.
std::string place_of_value(const Expression& expression, std::uint64_t row, std::uint64_t column);

// Returns the scratch memory that a worker needs to convert tiles of any of the steps.
std::size_t scratch_bytes(std::span<const BoundStep> steps);

// Converts tile `tile` (0 <= tile < slab.tiles) of a slab whose reads are done. Different tiles may be converted
// concurrently. `scratch` must have scratch_bytes() bytes of F32 and belong to the caller. Fails with exit code 4,
// naming the position, for values that are not finite or too large for the target type; 1 if a kernel fails.
Status convert_tile(Slab& slab, std::uint32_t tile, std::span<float> scratch, const Kernels& kernels);

// Converts slabs on the CPU with the kernels of modules.
class Converter {
 public:
  virtual ~Converter() = default;
  // Converts all of a slab whose reads are done and calls `done` once, possibly on another thread and possibly before
  // submit() returns. Errors are reported to the run's state.
  virtual void submit(Slab& slab, std::function<void()> done) noexcept = 0;
  // Runs other work of the run, possibly on another thread and possibly before it returns. `work` must not throw.
  virtual void run(std::function<void()> work) noexcept = 0;
  // Runs parts of such work, possibly in parallel.
  virtual const ForEach& for_each() const = 0;
};

// Returns a converter that processes the tiles in order on the calling thread.
std::unique_ptr<Converter> make_plain_converter(std::span<const BoundStep> steps, const Kernels& kernels,
                                                RunState& state);
// Returns a converter that processes the tiles of all slabs in parallel, on the threads of the task arena in which
// submit() is called. May be destroyed only after its last slab is done.
std::unique_ptr<Converter> make_parallel_converter(std::span<const BoundStep> steps, const Kernels& kernels,
                                                   RunState& state);

}  // namespace ggufmill
