#pragma once
// Binds the steps of a plan to their kernels.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/core/finite.h"
#include "pipeline/core/lifetime.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/step_layout.h"
#include "pipeline/report/difference.h"

namespace ggufmill {

// The kernels and weights of one encoding of a step. Points into the plan, its layouts and the kernels.
struct BoundEncoding {
  const EncodingLayout* layout = nullptr;
  const Encoding* encoding = nullptr;
  const std::string* name = nullptr;                 // of the tensor at the first of its places
  KernelChoice encode;                               // the kernel of its encoder; set if its work is kEncode
  const ggufmill_lattice_kernel* lattice = nullptr;  // null if lattices are not recognised
  std::optional<std::size_t> importance;             // index into BoundStep::importances; none: unweighted
  std::optional<std::size_t> metric;                 // index into StepLayout::metrics(), if it chooses levels
  KernelChoice decode;                               // set if it is measured or recognises lattices
  std::optional<std::size_t> weights;                // index for weighted errors, even if the kernel ignores it
  TargetMeasure* measure = nullptr;                  // set if a report is wanted; owned by the run

  // Type of the rows that the kernels make and read, which are interleaved afterwards if it is another one.
  const TypeInfo& rows_type() const { return plain_type(*encoding->type); }
};

struct BoundStep {
  const StepLayout* layout = nullptr;
  const Step* step = nullptr;
  std::uint64_t tile_rows = 1;
  // True if the values are decoded. False although the layout converts, if a type to be compared cannot be decoded.
  bool computes = false;
  KernelChoice decode;           // null kernel: the values are F32
  KernelChoice decode_compared;  // the same for Step::compared
  std::vector<std::shared_ptr<const Importance>> importances;
  std::vector<BoundEncoding> encodings;
  Nonfinite nonfinite = Nonfinite::kError;
  NonfiniteCount* nonfinite_count = nullptr;  // owned by the run; set if nonfinite values are zeroed or counted
  bool is_in_memory = false;             // the values are a caller's array: errors name neither a tensor nor a file
  TargetMeasure* measure = nullptr;      // of a comparison; owned by the run
  std::atomic<bool>* differs = nullptr;  // of a comparison: set if bytes or types differ; owned by the run

  // False if values that are not finite are kept without being counted.
  bool looks_for_nonfinite() const { return nonfinite != Nonfinite::kKeep || nonfinite_count; }
};

// Returns true if values of this type can be decoded to numbers: the type is F32 or a kernel decodes it.
bool is_decodable(const TypeInfo& type, const Kernels& kernels);

// Chooses the kernels of all steps before anything is written. Fails with exit code 5 if a kernel for a type is
// missing, 2 if a type requires importance that is missing. The plan, its layouts and the kernels must outlive the
// result.
Result<std::vector<BoundStep>> bind_kernels(GGUFMILL_OUTLIVES_RESULT const Plan& plan,
                                            GGUFMILL_OUTLIVES_RESULT std::span<const StepLayout> layouts,
                                            GGUFMILL_OUTLIVES_RESULT const Kernels& kernels);

}  // namespace ggufmill
