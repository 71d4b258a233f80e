#include "pipeline/io/platform/linux/cpu_limits.h"

#include <unistd.h>

#include <algorithm>

#include "pipeline/io/platform/linux/control_group.h"
#include "pipeline/io/platform/linux/kernel_files.h"

namespace ggufmill {
namespace {

// `some` and `others` are sorted.
unsigned in_both(const std::vector<unsigned>& some, const std::vector<unsigned>& others) {
  std::vector<unsigned> both;
  std::ranges::set_intersection(some, others, std::back_inserter(both));
  return static_cast<unsigned>(both.size());
}

// Intel's kinds of cores are devices of their own; on ARM, and on others that tell, each CPU has a capacity.
unsigned efficiency_cores(const std::string& devices, const std::vector<unsigned>& allowed) {
  unsigned count = 0;
  for (const char* const kind : {"/cpu_atom/cpus", "/cpu_lowpower/cpus"})
    count += in_both(allowed, kernel_list(kernel_text(devices + kind)));
  if (count != 0) return count;
  std::vector<unsigned> capacities;
  for (const unsigned cpu : allowed) {
    const std::vector<unsigned> capacity =
        kernel_list(kernel_text(devices + "/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity"));
    if (capacity.empty()) return 0;
    capacities.push_back(capacity.front());
  }
  if (capacities.empty()) return 0;
  const unsigned most = std::ranges::max(capacities);
  return static_cast<unsigned>(std::ranges::count_if(capacities, [&](unsigned each) { return each < most; }));
}

unsigned memory_nodes(const std::string& nodes, const std::vector<unsigned>& allowed) {
  unsigned count = 0;
  for (const unsigned node : kernel_list(kernel_text(nodes + "/online")))
    if (in_both(allowed, kernel_list(kernel_text(nodes + "/node" + std::to_string(node) + "/cpulist"))) != 0) ++count;
  return std::max(count, 1u);
}

}  // namespace

CpuLimits cpu_limits_in(const std::string& root, const std::vector<unsigned>& allowed) {
  const std::string devices = root + "/sys/devices";
  CpuLimits limits;
  limits.online = static_cast<unsigned>(kernel_list(kernel_text(devices + "/system/cpu/online")).size());
  if (limits.online == 0) limits.online = static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1l));
  limits.allowed = allowed.empty() ? limits.online : static_cast<unsigned>(allowed.size());
  limits.online = std::max(limits.online, limits.allowed);
  limits.efficiency = efficiency_cores(devices, allowed);
  limits.memory_nodes = memory_nodes(devices + "/system/node", allowed);
  const ControlGroup group(root);
  limits.quota = group.cpus();
  limits.quota_file = group.cpus_file();
  return limits;
}

}  // namespace ggufmill
