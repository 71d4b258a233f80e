#pragma once
// The steps of a plan with their kernels.

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
  kCopy,     // the step's values as they are, in the host's byte order
  kSwapped,  // the same in the other byte order
  kDecoded,  // F32
  kEncoded,
};

// How one encoding of a step comes about. Points into the plan and the kernels.
struct BoundEncoding {
  EncodingKind kind = EncodingKind::kCopy;
  const Encoding* encoding = nullptr;
  const std::string* name = nullptr;  // of the tensor in the first of its places
  std::uint64_t row_bytes = 0;
  KernelChoice encode;                    // kEncoded
  std::optional<std::size_t> importance;  // index into BoundStep::importances; none: unweighted
  KernelChoice decode;                    // kEncoded, where errors are measured: to see what was lost
  std::optional<std::size_t> weights;     // likewise, of the error: whether or not the encoding uses them
  TargetMeasure* measure = nullptr;       // where a report is wanted; the run's
};

struct BoundStep {
  const Step* step = nullptr;
  std::uint64_t row_bytes = 0;           // of the values
  std::uint64_t long_row_bytes = 0;      // F32 bytes of a row where it does not fit into a worker's scratch; else 0
  std::uint64_t measured_row_bytes = 0;  // likewise of a second row beside it
  std::uint64_t tile_rows = 1;
  bool computes = false;                    // the values are decoded
  KernelChoice decode;                      // null kernel: they are F32
  KernelChoice decode_compared;             // the same of Step::compared
  std::optional<std::size_t> f32_encoding;  // decoded rows are made in its buffer
  std::vector<std::shared_ptr<const Importance>> importances;
  std::vector<BoundEncoding> encodings;
  Nonfinite nonfinite = Nonfinite::kError;
  NonfiniteCount* nonfinite_count = nullptr;  // where that is no error; the run's
  TargetMeasure* measure = nullptr;           // of a comparison; the run's
  std::atomic<bool>* differs = nullptr;       // likewise: set where bytes do, or types
};

// Whether values of this type can be read as numbers: there is a kernel that decodes it, or it is F32.
bool is_decodable(const TypeInfo& type, const Kernels& kernels);

// What an expression converts on its way needs kernels: exit code 5 where there is none.
Status check_casts(const Expression& expression, const std::string& tensor, const Kernels& kernels);

// Chooses the kernels of all steps before anything is written. Exit code 5 for a type without the kernel, 2 for a type
// that needs importance where there is none. The plan and the kernels outlive the result.
Result<std::vector<BoundStep>> bind_kernels(const Plan& plan, const Kernels& kernels);

}  // namespace ggufmill
