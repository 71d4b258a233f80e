#pragma once
// Checks every kernel of a module, and measures how fast they are: `ggufmill kernels --check`.

#include <atomic>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/kernels/check/kernel_checks.h"
#include "pipeline/kernels/kernels.h"

namespace ggufmill {
namespace conformance {

// The speed of a kernel, for authors of modules: on one thread, on rows that fit a core's caches. The benchmarks of
// ggufmill itself are in tests/bench.
struct KernelTime {
  std::string type, operation, encoder;  // as in ConformanceResult
  bool weighted = false;                 // with importance
  double rate = 0;                       // bytes of F32 values read or written per second; 0: the kernel failed
  double reference = 0;                  // the same for the kernel that it is compared with; 0: there is none
};

// Times kernels, each in a process of its own, with and without importance as they take it. Takes about half a second
// for each line. The arguments are those of check_kernels().
std::vector<KernelTime> time_kernels(KernelList kernels, KernelList expected, const CheckOptions& options = {});

}  // namespace conformance

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
