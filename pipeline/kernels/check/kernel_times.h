#pragma once
// The speed of kernels, for authors of modules: on one thread, on rows that fit a core's caches. The benchmarks of
// ggufmill itself are in tests/bench.

#include <string>
#include <vector>

#include "pipeline/kernels/check/kernel_checks.h"

namespace ggufmill::conformance {

struct KernelTime {
  std::string type, operation, encoder;  // as in ConformanceResult
  bool weighted = false;                 // with importance
  double rate = 0;                       // bytes of F32 values read or written per second; 0: the kernel failed
  double reference = 0;                  // the same for the kernel that it is compared with; 0: there is none
};

// Times kernels, each in a process of its own, with and without importance as they take it. Takes about half a second
// for each line. The arguments are those of check_kernels().
std::vector<KernelTime> time_kernels(KernelList kernels, KernelList expected, const CheckOptions& options = {});

}  // namespace ggufmill::conformance
