#include "pipeline/io/own_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "pipeline/io/atomic_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/program.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

unsigned mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

std::string own_file_in(const TempDir& folder) {
  const std::string path = folder.file("file");
  write_text(path, "text");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  return path;
}

// The umask of this process while it exists.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  ~Umask() { ::umask(before_); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

 private:
  mode_t before_;
};

}  // namespace

TEST_CASE("a private folder is new each time, and only this user may enter it") {
  const TempDir folder;
  const Umask none(0);
  const auto first = make_private_folder(folder.file("a-")), second = make_private_folder(folder.file("a-"));
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first.value() != second.value());
  CHECK(first.value().starts_with(folder.file("a-")));
  CHECK(mode_of(first.value()) == 0700);
}

TEST_CASE("a private folder cannot be made in a folder that is missing") {
  const TempDir folder;
  CHECK(make_private_folder(folder.file("missing/a-")).error().code == ExitCode::kIo);
}

TEST_CASE("random letters differ") {
  CHECK(random_letters(12) != random_letters(12));
  CHECK(random_letters(12).size() == 12);
}

TEST_CASE("a regular file of this user that nobody else may write to is its own") {
  const TempDir folder;
  CHECK(is_own_file(own_file_in(folder)));
}

TEST_CASE("a user's private group does not count as another user") {
  const TempDir folder;
  const std::string path = own_file_in(folder);
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  REQUIRE(::chmod(path.c_str(), 0664) == 0);
  CHECK(is_own_file(path) == (info.st_gid == info.st_uid));
}

TEST_CASE("links, files that others may write to, and missing files are not") {
  const TempDir folder;
  const std::string path = own_file_in(folder), other = folder.file("other");
  CHECK_FALSE(is_own_file(other));
  SECTION("a symbolic link") {
    fs::create_symlink(path, other);
    CHECK_FALSE(is_own_file(other));
  }
  SECTION("a second name") {
    fs::create_hard_link(path, other);
    CHECK_FALSE(is_own_file(other));
  }
  SECTION("the permissions of others") {
    REQUIRE(::chmod(path.c_str(), 0666) == 0);
    CHECK_FALSE(is_own_file(path));
  }
}

TEST_CASE("a file that only its owner may write to ignores the umask and the file that it replaces") {
  const TempDir folder;
  const std::string path = own_file_in(folder);
  const Umask none(0);
  AtomicFile::Options options;
  options.overwrite = options.only_owner_writes = true;
  SECTION("a new file") { REQUIRE(fs::remove(path)); }
  SECTION("a replaced file") { REQUIRE(::chmod(path.c_str(), 0666) == 0); }
  auto file = AtomicFile::create(path, 0, options);
  REQUIRE(file);
  REQUIRE(file.value()->seal({}, 0));
  CHECK(mode_of(path) == 0644);
}

TEST_CASE("a path is trusted unless others may change it") {
  const TempDir folder;
  const std::string inner = folder.file("inner");
  fs::create_directory(inner);
  write_text(inner + "/file", "");
  CHECK(why_untrusted(inner + "/file").empty());
  SECTION("the file") {
    REQUIRE(::chmod((inner + "/file").c_str(), 0666) == 0);
    CHECK(why_untrusted(inner + "/file") == "everyone may write to it");
  }
  SECTION("a folder above it") {
    REQUIRE(::chmod(inner.c_str(), 0777) == 0);
    CHECK(why_untrusted(inner + "/file") ==
          fmt::format("it is in '{}', and everyone may write to it", fs::canonical(inner).string()));
  }
  SECTION("the file behind a link") {
    REQUIRE(::chmod((inner + "/file").c_str(), 0666) == 0);
    fs::create_symlink(inner + "/file", folder.file("link"));
    CHECK(why_untrusted(folder.file("link")) == "everyone may write to it");
  }
}
