#pragma once
// Checks every kernel of a module: `ggufmill kernels --check`.

#include <atomic>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/kernels/check/kernel_checks.h"
#include "pipeline/kernels/check/kernel_times.h"
#include "pipeline/kernels/kernels.h"

namespace ggufmill {

struct ConformanceOptions {
  std::string module;              // path
  std::string reference;           // path of the module with the bytes to compare with; empty: the linked-in one
  std::vector<std::string> types;  // only these; empty: all
  bool times = false;              // also measure how fast the kernels are
  const std::atomic<bool>* stop = nullptr;  // may be null; set to true to stop
  const Kernels* loaded = nullptr;          // of the modules with which it must not collide; may be null
};

struct ModuleConformance {
  ModuleReport module;
  std::vector<conformance::ConformanceResult> results;
  std::vector<conformance::KernelTime> times;

  std::size_t count(conformance::Finding::Kind kind) const;
};

// Loads a module and checks its kernels, each check in a process of its own. Fails with exit code 5 if a module is
// refused, or has none of the types, and if it was stopped.
Result<ModuleConformance> check_module(const ConformanceOptions& options);

}  // namespace ggufmill
