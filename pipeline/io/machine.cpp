#include "pipeline/io/machine.h"

#include <algorithm>

#include "pipeline/io/platform/paths.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {

unsigned most_threads() {
  constexpr unsigned kMin = 64, kForEachCpu = 4;
  return std::max(kMin, kForEachCpu * usable_cpus());
}

unsigned threads_for(unsigned wanted) { return wanted == 0 ? usable_cpus() : std::min(wanted, most_threads()); }

std::string cache_folder(const std::string& kind) {
  if (const auto own = environment_variable("GGUFMILL_CACHE"); own && !own->empty()) return *own + "/" + kind;
  const std::string caches = user_folder(UserFolder::kCache);
  return caches.empty() ? caches : caches + "/ggufmill/" + kind;
}

}  // namespace ggufmill
