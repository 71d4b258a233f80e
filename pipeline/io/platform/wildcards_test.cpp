#include <algorithm>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// A folder with a/x-1, a/x-2, b/x-3, b/.hidden and c.
class Files {
 public:
  Files() {
    for (const char* name : {"a/x-1", "a/x-2", "b/x-3", "b/.hidden", "c"}) {
      fs::create_directories(fs::path(folder_.file(name)).parent_path());
      write_text(folder_.file(name), "");
    }
  }
  // Returns the paths that fit, relative to the folder.
  std::vector<std::string> matching(const std::string& pattern) const {
    std::vector<std::string> paths = paths_matching(folder_.file(pattern)).value();
    for (std::string& path : paths) path.erase(0, folder_.file("").size());
    return paths;
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

 private:
  TempDir folder_;
};

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("wildcards fit names in every folder of a path") {
  const Files files;
  CHECK(files.matching("*/x-[12]") == Paths{"a/x-1", "a/x-2"});
  CHECK(files.matching("?/x-3") == Paths{"b/x-3"});
  CHECK(files.matching("a/../b/x*") == Paths{"a/../b/x-3"});
  CHECK(files.matching("*") == Paths{"a", "b", "c"});
  CHECK(files.matching("*/") == Paths{"a/", "b/"});
  CHECK(files.matching("none/*").empty());
  CHECK(files.matching("*/none").empty());
}

TEST_CASE("a wildcard fits a leading dot only after one in the pattern") {
  const Files files;
  CHECK(files.matching("b/*") == Paths{"b/x-3"});
  CHECK(files.matching("b/.*") == Paths{"b/.hidden"});
}

#ifndef _WIN32
TEST_CASE("a backslash takes the meaning from a wildcard") {
  const Files files;
  write_text(files.path("a/[x]"), "");
  CHECK(files.matching("*/\\[x\\]") == Paths{"a/[x]"});
}

TEST_CASE("a pattern that links multiply is given up") {
  const Files files;
  for (const char* name : {"l1", "l2", "l3", "l4"}) fs::create_directory_symlink(".", files.path(name));
  CHECK_FALSE(paths_matching(files.path("*/*/*/*/*/*/*/*/*/*/*/*/*/none")));
}
#endif

TEST_CASE("a pattern that goes back and forth is given up") {
  const Files files;
  std::string pattern;
  for (int i = 0; i < 20; ++i) pattern += "*/../";
  CHECK_FALSE(paths_matching(files.path(pattern + "*")));
}

TEST_CASE("a path of very many names needs no deep stack") {
  std::string pattern;
  for (int i = 0; i < 300'000; ++i) pattern += "a/";
  CHECK(paths_matching(pattern + "*").value().empty());
}

TEST_CASE("many stars take no exponential time") {
  CHECK_FALSE(matches_wildcards("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(250, 'a')));
}
