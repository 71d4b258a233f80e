#pragma once
// Limits of the control groups of Linux.

#include <cstdint>
#include <string>

namespace ggufmill {

// Limits of the control groups of this process: version 2, and version 1 if it is mounted in its usual place. Each
// limit is the minimum over the process's own group and its ancestors.
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

}  // namespace ggufmill
