#pragma once
// What the machine, and the container or batch job around this process, let it use.

#include <cstdint>
#include <string>

namespace ggufmill {

// Linux control groups as this process sees them: version 2, and 1 where that is mounted in its usual place. Each
// figure is the least of the process's own group and those above it.
class ControlGroup {
 public:
  // `root` stands for "/" (tests).
  explicit ControlGroup(const std::string& root = "");

  double cpus() const { return cpus_; }             // CPU seconds per second; infinite without a quota
  std::uint64_t memory() const { return memory_; }  // bytes; UINT64_MAX without a limit

 private:
  void read_group(const std::string& folder);
  void read_v1(const std::string& mount);

  double cpus_;
  std::uint64_t memory_ = UINT64_MAX;
};

// CPUs that this process may run on (affinity mask, which also is how a job on a NUMA node is bound), at most as many
// as its control group's quota keeps busy; at least 1.
unsigned usable_cpus();

// As many threads as a run that was asked for `wanted` uses: 0 asks for as many as there are usable CPUs. More than
// most_threads() only wait for each other.
unsigned threads_for(unsigned wanted);
unsigned most_threads();

// Bytes of memory: of the machine, or of its control group where that is less.
std::uint64_t usable_memory();

}  // namespace ggufmill
