#include "pipeline/io/platform/linux/control_group.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "pipeline/io/platform/linux/kernel_files.h"

namespace ggufmill {
namespace {

// Names of this process's groups: of each controller of version 1, and "" for version 2.
using OwnGroups = std::map<std::string, std::string>;

// Reads lines such as "4:cpu,cpuacct:/slice/job" and "0::/slice/job".
OwnGroups own_groups(const std::string& root) {
  OwnGroups groups;
  std::istringstream lines(kernel_text(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    std::istringstream controllers(line.substr(first + 1, second - first - 1) + ",");
    for (std::string controller; std::getline(controllers, controller, ',');)
      groups[controller] = line.substr(second + 1);
  }
  return groups;
}

// Reads "200000 100000" or "max 100000": microseconds of CPU time per period in microseconds. Returns infinity if the
// quota is "max" or -1 or the text is empty.
double quota_of(const std::string& text) {
  std::istringstream numbers(text);
  double quota = 0, period = 0;
  return numbers >> quota >> period && quota > 0 && period > 0 ? quota / period
                                                               : std::numeric_limits<double>::infinity();
}

std::uint64_t number_of(const std::string& text) {
  std::istringstream numbers(text);
  std::uint64_t number = 0;
  return !text.starts_with('-') && numbers >> number ? number : UINT64_MAX;
}

// Replaces "\040" by a space, and so on, as in /proc/self/mountinfo.
std::string unescaped(const std::string& path) {
  std::string plain;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto is_octal = [&](std::size_t at) { return at < path.size() && path[at] >= '0' && path[at] <= '7'; };
    if (path[i] != '\\' || !is_octal(i + 1) || !is_octal(i + 2) || !is_octal(i + 3)) {
      plain += path[i];
      continue;
    }
    plain += static_cast<char>((path[i + 1] - '0') * 64 + (path[i + 2] - '0') * 8 + (path[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

// Returns the part of a group's name below the group `top`; empty if it is not below it, as for a process that was
// moved to a group outside its container's.
std::string below(const std::string& group, const std::string& top) {
  const std::string prefix = top == "/" ? "" : top;
  if (!group.starts_with(prefix + "/") || group.find("/..") != group.npos) return {};
  const std::string rest = group.substr(prefix.size());
  return rest == "/" ? "" : rest;
}

}  // namespace

// A mounted hierarchy of groups.
struct ControlGroup::Hierarchy {
  std::string folder;      // where it is mounted
  std::string top;         // the group that is mounted there
  std::string controller;  // of version 1: one whose limits are read; else empty
};

// Reads lines such as "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct".
std::vector<ControlGroup::Hierarchy> ControlGroup::mounted(const std::string& root) {
  std::vector<Hierarchy> all;
  std::istringstream lines(kernel_text(root + "/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, parent, device, top, folder, word, type, source, options;
    words >> number >> parent >> device >> top >> folder;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    if (type == "cgroup2") all.push_back({unescaped(folder), unescaped(top), ""});
    if (type != "cgroup") continue;
    for (const char* const controller : {"cpu", "memory"})
      if (("," + options + ",").find(std::string(",") + controller + ",") != std::string::npos)
        all.push_back({unescaped(folder), unescaped(top), controller});
  }
  if (all.empty())
    all = {{"/sys/fs/cgroup", "/", ""}, {"/sys/fs/cgroup/cpu", "/", "cpu"}, {"/sys/fs/cgroup/memory", "/", "memory"}};
  return all;
}

ControlGroup::ControlGroup(const std::string& root) {
  const OwnGroups own = own_groups(root);
  for (const Hierarchy& hierarchy : mounted(root)) {
    const auto group = own.find(hierarchy.controller);
    std::string name = group == own.end() ? "" : below(group->second, hierarchy.top);
    for (; !name.empty(); name.resize(name.rfind('/'))) read_group(root, hierarchy.folder + name);
    read_group(root, hierarchy.folder);
  }
}

// The files of the versions have different names.
void ControlGroup::read_group(const std::string& root, const std::string& folder) {
  const auto text = [&](const char* file) { return kernel_text(root + folder + "/" + file); };
  const auto limit_cpus = [&](double quota, const char* file) {
    if (quota >= cpus_) return;
    cpus_ = quota;
    cpus_file_ = folder + "/" + file;
  };
  limit_cpus(quota_of(text("cpu.max")), "cpu.max");
  limit_cpus(quota_of(text("cpu.cfs_quota_us") + " " + text("cpu.cfs_period_us")), "cpu.cfs_quota_us");
  memory_ = std::min({memory_, number_of(text("memory.max")), number_of(text("memory.limit_in_bytes"))});
}

}  // namespace ggufmill
