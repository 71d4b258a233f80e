#pragma once
// Limits of the control groups of Linux.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ggufmill {

// Limits of the control groups of this process, of versions 1 and 2, wherever they are mounted. Each limit is the
// minimum over the process's own group and its ancestors, as far as they are visible in the mounted file systems: a
// container may see its own group only. Shares of busy CPUs (cpu.weight, cpu.shares) limit nothing while others idle.
class ControlGroup {
 public:
  // `root` replaces "/" in all paths (for tests). Throws std::bad_alloc.
  explicit ControlGroup(const std::string& root = "");

  double cpus() const { return cpus_; }  // CPU seconds per second; infinite without a quota
  // The file that sets the least quota, without `root`; empty without a quota.
  const std::string& cpus_file() const { return cpus_file_; }
  std::uint64_t memory() const { return memory_; }  // bytes; UINT64_MAX without a limit

 private:
  struct Hierarchy;
  static std::vector<Hierarchy> mounted(const std::string& root);
  void read_group(const std::string& root, const std::string& folder);

  double cpus_ = std::numeric_limits<double>::infinity();
  std::string cpus_file_;
  std::uint64_t memory_ = UINT64_MAX;
};

}  // namespace ggufmill
