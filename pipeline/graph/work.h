#pragma once
// A route with its kernels: what is done with every row of one source tensor.

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/target_measure.h"

namespace ggufmill {

enum class TargetKind {
  kCarry,   // the source's bytes, in the host's byte order
  kDecode,  // F32 as decoded
  kEncode,
};

// How one target's bytes come about. Points into the plan and the kernels.
struct TargetWork {
  TargetKind kind = TargetKind::kCarry;
  const Target* target = nullptr;
  const Tensor* tensor = nullptr;
  std::uint64_t row_bytes = 0;
  KernelChoice encode;                    // kEncode
  std::optional<std::size_t> importance;  // index into RouteWork::importances; none: unweighted
  KernelChoice decode{};                  // kEncode, where errors are measured: to see what was lost
  std::optional<std::size_t> weights{};   // likewise, of the error: whether or not the encoding uses them
  TargetMeasure* measure = nullptr;       // where a report is wanted; the run's
};

struct RouteWork {
  const Route* route = nullptr;
  std::uint64_t row_bytes = 0;           // in the source
  std::uint64_t long_row_bytes = 0;      // F32 bytes of a row where it does not fit into a worker's scratch; else 0
  std::uint64_t measured_row_bytes = 0;  // likewise of a row that is decoded again
  std::uint64_t tile_rows = 1;
  bool converts = false;                  // some target is not carried
  KernelChoice decode;                    // null kernel: the source is F32
  std::optional<std::size_t> f32_target;  // decoded rows are made in its buffer
  std::vector<const Importance*> importances;
  std::vector<TargetWork> targets;
};

// Chooses the kernels of all routes before anything is written. Exit code 5 for a type without the kernel, 2 for a type
// that needs importance where there is none. The plan and the kernels outlive the result.
Result<std::vector<RouteWork>> bind_kernels(const Plan& plan, const Kernels& kernels);

}  // namespace ggufmill
