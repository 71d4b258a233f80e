#include "pipeline/config/extended_files.h"

#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

std::string what(const Result<bool>& entered) { return entered ? std::string() : entered.error().what; }

}  // namespace

TEST_CASE("a file is entered once, whatever the path") {
  const TempDir folder;
  write_text(folder.file("a.yaml"), "");
  fs::create_directory_symlink(".", folder.file("link"));
  fs::create_hard_link(folder.file("a.yaml"), folder.file("b.yaml"));
  ExtendedFiles files("map");
  REQUIRE(files.enter(folder.file("a.yaml"), {}).value());
  files.leave();
  for (const char* path : {"a.yaml", "link/a.yaml", "link/link/a.yaml", "b.yaml"}) {
    CAPTURE(path);
    CHECK_FALSE(files.enter(folder.file(path), {}).value());
  }
}

TEST_CASE("a file that extends itself through a link is an error") {
  const TempDir folder;
  write_text(folder.file("a.yaml"), "");
  fs::create_directory_symlink(".", folder.file("link"));
  ExtendedFiles files("map");
  REQUIRE(files.enter(folder.file("a.yaml"), {}).value());
  CHECK(what(files.enter(folder.file("link/a.yaml"), {})) ==
        fmt::format("map '{}' extends itself through '{}'", folder.file("link/a.yaml"), folder.file("a.yaml")));
}

TEST_CASE("the length of a chain is limited") {
  ExtendedFiles files("map");
  for (std::size_t i = 0; i < ExtendedFiles::kMaxDepth; ++i) REQUIRE(files.enter(fmt::format("m{}", i), {}).value());
  CHECK(what(files.enter("last", {})) == "the chain of extended maps of 'm0' is longer than 32");
}

TEST_CASE("the number of files is limited") {
  ExtendedFiles files("map");
  REQUIRE(files.enter("first", {}).value());
  for (std::size_t i = 1; i < ExtendedFiles::kMaxFiles; ++i) {
    REQUIRE(files.enter(fmt::format("m{}", i), {}).value());
    files.leave();
  }
  CHECK(what(files.enter("last", {})) == "map 'first' extends more than 64 files, directly or through others");
}

TEST_CASE("the size of all files is limited") {
  ExtendedFiles files("map");
  REQUIRE(files.enter("first", {}).value());
  CHECK(files.count(ExtendedFiles::kMaxBytes, {}));
  CHECK(files.count(1, {}).error().what == "map 'first' and the files that it extends have more than 16.00 MiB");
}
