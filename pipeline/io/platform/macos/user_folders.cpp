// Unproven: compiled with stub headers, never run.

#include "pipeline/io/platform/paths.h"

namespace ggufmill {

std::string user_folder(UserFolder kind) {
  const std::string home = home_folder();
  if (home.empty()) return home;
  return home + (kind == UserFolder::kCache ? "/Library/Caches" : "/Library/Application Support");
}

}  // namespace ggufmill
