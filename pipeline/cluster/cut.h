#pragma once
// How a plan is cut into parts: contiguous runs of units of nearly the same cost.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// How fast one thread decodes and encodes values of a type with the kernels of an ISA, in millions of weights a second.
// `./dev bench --only speeds` makes the table that is built in (kernel_speeds.tsv).
struct KernelSpeed {
  std::string type, isa;
  double decode = 0, encode = 0;  // 0: none
};
const std::vector<KernelSpeed>& kernel_speeds();

// What costs are reckoned for: parts differ in what they compute and in what they read and write, and the cut needs to
// know how the two compare.
struct ImaginedMachine {
  std::string isa = "x86-64-v4";  // of a type that it has no kernel for, the speed of the best that has
  double threads = 16;
  double bytes_per_second = 1e9;  // of the file system, read and written, for one part
};

// Seconds that the imagined machine takes for each unit: reading, computing and writing go on at once, so the longest
// of the three, and nearly none for the rest.
std::vector<double> unit_costs(const Plan& plan, const ImaginedMachine& machine = {});

// N + 1 numbers, the first unit of each part and the end: as many parts as `parts`, but none without a unit. A cut goes
// where the costs are halved best; where an output has several files (shards), nearby where one ends and another
// begins, so that parts write whole shards.
std::vector<std::size_t> cut_plan(const Plan& plan, const std::vector<double>& costs, std::size_t parts);

// One for each 16 GiB to be read: minutes of work.
std::size_t usual_parts(const Plan& plan);

// How many parts of one array each plan gets so that the longest part is as short as can be: at least one each, and not
// more than it has units. `parts`: of all of them together; 0: as many as are usual, up to kMostParts. Exit code 2
// where there are fewer parts than plans.
Result<std::vector<std::size_t>> share_parts(const std::vector<Plan>& plans, std::size_t parts,
                                             const ImaginedMachine& machine = {});

}  // namespace ggufmill
