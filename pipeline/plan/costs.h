#pragma once
// The time that a plan takes on a machine, by the measured speeds of kernels.

#include <string>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill {

// Speed at which one thread decodes and encodes values of a type with the kernels of an ISA, in millions of weights per
// second. `./dev bench --only speeds` generates the built-in table (kernel_speeds.tsv).
struct KernelSpeed {
  std::string type, isa;
  double decode = 0, encode = 0;  // 0: no such kernel
};
const std::vector<KernelSpeed>& kernel_speeds();

// The machine that costs are computed for. Parts differ in how much they compute and in how much they read and write;
// the cut needs to know how the two compare.
struct ImaginedMachine {
  std::string isa = "x86-64-v4";  // types without a kernel for it: the best other speed
  double threads = 16;
  double bytes_per_second = 1e9;  // file system throughput for one part, for reads and for writes
};

// Returns the seconds the assumed machine needs for each unit. Reading, computing and writing overlap, so this is the
// longest of the three plus a small constant.
std::vector<double> unit_costs(const Plan& plan, const ImaginedMachine& machine = {});

}  // namespace ggufmill
