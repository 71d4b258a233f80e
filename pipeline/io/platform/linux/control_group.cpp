#include "pipeline/io/platform/linux/control_group.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <new>

namespace ggufmill {
namespace {

// Opens a file of the kernel, which may be missing. Throws std::bad_alloc if there is not enough memory to open it.
std::ifstream opened(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && errno == ENOMEM) throw std::bad_alloc();
  file.exceptions(std::ios::badbit);
  return file;
}

// Reads "200000 100000" or "max 100000": microseconds of CPU time per period in microseconds. Returns infinity if the
// quota is "max" or the file is missing.
double quota_of(const std::string& path) {
  std::ifstream file = opened(path);
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

std::uint64_t number_of(const std::string& path) {
  std::ifstream file = opened(path);
  std::uint64_t number = 0;
  return file >> number ? number : UINT64_MAX;
}

// Returns the version 2 group of this process, from the line "0::/slice/job".
std::string own_group(const std::string& root) {
  std::ifstream groups = opened(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return "/";
}

}  // namespace

ControlGroup::ControlGroup(const std::string& root) : cpus_(std::numeric_limits<double>::infinity()) {
  const std::string mount = root + "/sys/fs/cgroup";
  for (std::string group = own_group(root); !group.empty(); group.resize(group.rfind('/'))) read_group(mount + group);
  read_group(mount);  // what a container sees of its own group
  read_v1(mount);
}

void ControlGroup::read_group(const std::string& folder) {
  cpus_ = std::min(cpus_, quota_of(folder + "/cpu.max"));
  memory_ = std::min(memory_, number_of(folder + "/memory.max"));
}

void ControlGroup::read_v1(const std::string& mount) {
  std::ifstream quota = opened(mount + "/cpu/cpu.cfs_quota_us"), period = opened(mount + "/cpu/cpu.cfs_period_us");
  double part = 0, whole = 0;
  if (quota >> part && period >> whole && part > 0 && whole > 0) cpus_ = std::min(cpus_, part / whole);
  memory_ = std::min(memory_, number_of(mount + "/memory/memory.limit_in_bytes"));
}

}  // namespace ggufmill
