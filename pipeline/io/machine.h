#pragma once
// Resources of this machine that a run may use, and the user's cache on it.

#include <string>

#include "pipeline/io/platform/machine.h"

namespace ggufmill {

// Number of threads for a run that requests `wanted`; 0 requests one per usable CPU. Capped at most_threads(): more
// threads would only wait for each other.
unsigned threads_for(unsigned wanted);
unsigned most_threads();
// Returns what threads_for() goes by, such as "16 CPUs, 8 of them allowed to this process; 2.5 at a time by
// /sys/fs/cgroup/job/cpu.max".
std::string describe(const CpuLimits& limits);

// Folder of this user's cache for one kind of data: $GGUFMILL_CACHE/KIND, or else ggufmill/KIND in
// user_folder(UserFolder::kCache); empty if neither is known. It may not exist yet, and may be removed at any time.
std::string cache_folder(const std::string& kind);

}  // namespace ggufmill
