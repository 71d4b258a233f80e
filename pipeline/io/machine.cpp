#include "pipeline/io/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/io/platform/paths.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {

unsigned most_threads() {
  constexpr unsigned kMin = 64, kForEachCpu = 4;
  return std::max(kMin, kForEachCpu * usable_cpus());
}

unsigned threads_for(unsigned wanted) { return wanted == 0 ? usable_cpus() : std::min(wanted, most_threads()); }

std::string describe(const CpuLimits& limits) {
  std::string text = fmt::format("{} CPU{}", limits.online, limits.online == 1 ? "" : "s");
  if (limits.allowed < limits.online) text += fmt::format(", {} of them allowed to this process", limits.allowed);
  if (limits.efficiency != 0) text += fmt::format(", {} of these efficiency cores", limits.efficiency);
  if (limits.memory_nodes > 1) text += fmt::format(", on {} memory nodes", limits.memory_nodes);
  if (limits.quota < limits.allowed)
    text += fmt::format("; {:.4g} at a time by {}", limits.quota,
                        limits.quota_file.empty() ? "this process's job" : limits.quota_file);
  return text;
}

std::string cache_folder(const std::string& kind) {
  if (const auto own = environment_variable("GGUFMILL_CACHE"); own && !own->empty()) return *own + "/" + kind;
  const std::string caches = user_folder(UserFolder::kCache);
  return caches.empty() ? caches : caches + "/ggufmill/" + kind;
}

}  // namespace ggufmill
