#pragma once
// Binds the steps of a plan to their kernels.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/graph/finite.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/difference.h"

namespace ggufmill {

enum class EncodingKind {
  kCopy,     // the step's values unchanged, in the host's byte order
  kSwapped,  // the same in the opposite byte order
  kDecoded,  // F32
  kEncoded,
};

// How one encoding of a step is made. Points into the plan and the kernels.
struct BoundEncoding {
  EncodingKind kind = EncodingKind::kCopy;
  const Encoding* encoding = nullptr;
  const std::string* name = nullptr;  // of the tensor at the first of its places
  std::uint64_t row_bytes = 0;
  KernelChoice encode;                    // set if kEncoded
  std::optional<std::size_t> importance;  // index into BoundStep::importances; none: unweighted
  KernelChoice decode;                    // set if kEncoded and errors are measured
  std::optional<std::size_t> weights;     // index for the weighted error, even if the encoding does not use it
  TargetMeasure* measure = nullptr;       // set if a report is wanted; owned by the run
};

struct BoundStep {
  const Step* step = nullptr;
  std::uint64_t row_bytes = 0;           // of the expression's values
  std::uint64_t long_row_bytes = 0;      // F32 bytes of a row that does not fit into a worker's scratch; else 0
  std::uint64_t measured_row_bytes = 0;  // the same for a second row, needed to measure errors
  std::uint64_t tile_rows = 1;
  bool computes = false;                    // true if the values are decoded
  KernelChoice decode;                      // null kernel: the values are F32
  KernelChoice decode_compared;             // the same for Step::compared
  std::optional<std::size_t> f32_encoding;  // the values are decoded into this encoding's buffer
  std::vector<std::shared_ptr<const Importance>> importances;
  std::vector<BoundEncoding> encodings;
  Nonfinite nonfinite = Nonfinite::kError;
  NonfiniteCount* nonfinite_count = nullptr;  // set if nonfinite values are not an error; owned by the run
  TargetMeasure* measure = nullptr;           // of a comparison; owned by the run
  std::atomic<bool>* differs = nullptr;       // of a comparison: set if bytes or types differ; owned by the run
};

// Returns true if values of this type can be decoded to numbers: the type is F32 or a kernel decodes it.
bool is_decodable(const TypeInfo& type, const Kernels& kernels);

// Checks that kernels exist for all casts within an expression; fails with exit code 5 if one is missing.
Status check_casts(const Expression& expression, const std::string& tensor, const Kernels& kernels);

// Chooses the kernels of all steps before anything is written. Fails with exit code 5 if a kernel for a type is
// missing, 2 if a type requires importance that is missing. The plan and the kernels must outlive the result.
Result<std::vector<BoundStep>> bind_kernels(const Plan& plan, const Kernels& kernels);

}  // namespace ggufmill
