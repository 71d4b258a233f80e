#pragma once
// What /proc and /sys say about the CPUs of a process.

#include <string>
#include <vector>

#include "pipeline/io/platform/machine.h"

namespace ggufmill {

// Returns the limits of a process whose affinity mask allows the CPUs of these numbers; none: the mask is unknown.
// `root` replaces "/" in all paths (for tests). Throws std::bad_alloc.
CpuLimits cpu_limits_in(const std::string& root, const std::vector<unsigned>& allowed);

}  // namespace ggufmill
