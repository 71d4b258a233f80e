#include "tests/support/temp_dir.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace ggufmill {

TempDir::TempDir(const std::filesystem::path& in) {
  std::string name = in / "ggufmill-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;  // the system must clean up files that cannot be removed
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ggufmill
