#pragma once
// Resources that the machine, and the container or batch job this process runs in, allow it to use.

#include <cstdint>
#include <string>

namespace ggufmill {

// Limits of the Linux control groups of this process: version 2, and version 1 if it is mounted in its usual place.
// Each limit is the minimum over the process's own group and its ancestors.
class ControlGroup {
 public:
  // `root` replaces "/" in all paths (for tests).
  explicit ControlGroup(const std::string& root = "");

  double cpus() const { return cpus_; }             // CPU seconds per second; infinite without a quota
  std::uint64_t memory() const { return memory_; }  // bytes; UINT64_MAX without a limit

 private:
  void read_group(const std::string& folder);
  void read_v1(const std::string& mount);

  double cpus_;
  std::uint64_t memory_ = UINT64_MAX;
};

// Number of CPUs that this process may run on (affinity mask, which also reflects a job bound to a NUMA node), but at
// most as many as its control group's quota keeps busy; at least 1.
unsigned usable_cpus();

// Number of threads for a run that requests `wanted`; 0 requests one per usable CPU. Capped at most_threads(): more
// threads would only wait for each other.
unsigned threads_for(unsigned wanted);
unsigned most_threads();

// Folder of this user's cache for one kind of data: $GGUFMILL_CACHE/KIND, $XDG_CACHE_HOME/ggufmill/KIND or
// ~/.cache/ggufmill/KIND, depending on which variables are set; empty if none is. It may not exist yet, and may be
// removed at any time.
std::string cache_folder(const std::string& kind);

// Bytes of memory of the machine, or of its control group if that is less.
std::uint64_t usable_memory();

}  // namespace ggufmill
