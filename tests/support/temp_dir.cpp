#include "tests/support/temp_dir.h"

#include <fmt/format.h>

#include <random>
#include <system_error>

namespace ggufmill {

TempDir::TempDir(const fs::path& in) {
  std::random_device random;
  do {
    path_ = in / fmt::format("ggufmill-test-{:06x}", random() & 0xffffff);
  } while (!fs::create_directory(path_));
  fs::permissions(path_, fs::perms::owner_all);
}

TempDir::~TempDir() {
  std::error_code ignored;  // the system must clean up files that cannot be removed
  fs::remove_all(path_, ignored);
}

}  // namespace ggufmill
