#include "pipeline/io/input_file.h"

#include <sys/stat.h>

#include <array>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

std::string read_at(const InputFile& file, std::uint64_t offset, std::size_t bytes) {
  std::string into(bytes, '?');
  const Status status = file.read(offset, std::as_writable_bytes(std::span(into)));
  return status ? into : "error: " + status.error().what;
}

ExitCode open_error(const std::string& path) {
  const auto file = InputFile::open(path);
  return file ? ExitCode::kOk : file.error().code;
}

}  // namespace

TEST_CASE("a file is read at any position") {
  const TempDir folder;
  write_text(folder.file("a"), "0123456789");
  const auto file = InputFile::open(folder.file("a")).value();
  CHECK(file->bytes() == 10);
  CHECK(read_at(*file, 3, 4) == "3456");
  CHECK(read_at(*file, 10, 0).empty());
}

TEST_CASE("a link to a file is followed") {
  const TempDir folder;
  write_text(folder.file("a"), "abc");
  fs::create_symlink("a", folder.file("link"));
  CHECK(read_at(*InputFile::open(folder.file("link")).value(), 0, 3) == "abc");
}

TEST_CASE("a range past the end is a bad input") {
  const TempDir folder;
  write_text(folder.file("a"), "abc");
  const auto file = InputFile::open(folder.file("a")).value();
  std::array<std::byte, 2> into;
  for (const std::uint64_t offset : {2ull, 4ull, ~0ull, 1ull << 63}) {
    CAPTURE(offset);
    const Status status = file->read(offset, into);
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ExitCode::kBadInput);
  }
}

TEST_CASE("a file that shrinks while it is open is a bad input") {
  const TempDir folder;
  write_text(folder.file("a"), "0123456789");
  const auto file = InputFile::open(folder.file("a")).value();
  fs::resize_file(folder.file("a"), 5);
  std::array<std::byte, 10> into;
  const Status status = file->read(0, into);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kBadInput);
  CHECK(status.error().what == "the file ends before the 5 bytes at byte 0x5");
}

TEST_CASE("data in the page cache is read without waiting, if the system supports it") {
  const TempDir folder;
  write_text(folder.file("a"), "0123456789");
  const auto file = InputFile::open(folder.file("a")).value();
  std::string into(4, '?');
  if (!file->read_if_cached(3, std::as_writable_bytes(std::span(into)))) into = read_at(*file, 3, 4);
  CHECK(into == "3456");
}

TEST_CASE("data past the end is in no cache") {
  const TempDir folder;
  write_text(folder.file("a"), "0123456789");
  const auto file = InputFile::open(folder.file("a")).value();
  std::array<std::byte, 10> into;
  CHECK_FALSE(file->read_if_cached(1, into));
  fs::resize_file(folder.file("a"), 5);
  CHECK_FALSE(file->read_if_cached(0, into));
}

TEST_CASE("only regular files are opened") {
  const TempDir folder;
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(open_error(folder.file("pipe")) == ExitCode::kBadInput);  // immediately: the pipe has no writer
  CHECK(open_error(folder.path()) == ExitCode::kBadInput);
  CHECK(open_error("/dev/null") == ExitCode::kBadInput);
  CHECK(open_error(folder.file("missing")) == ExitCode::kBadInput);
  CHECK(open_error("") == ExitCode::kBadInput);
  CHECK(open_error(folder.file(std::string_view("a\0b", 3))) == ExitCode::kBadInput);
}

TEST_CASE("every system call of reading may fail") {
  const TempDir folder;
  write_text(folder.file("a"), "0123456789");
  int k = 1;
  for (bool reached = true; reached; ++k) {
    FaultAt fault(k, EIO);
    const auto file = InputFile::open(folder.file("a"));
    const std::string text = file ? read_at(*file.value(), 0, 10) : "error: " + file.error().what;
    reached = fault.reached();
    CAPTURE(k);
    CHECK(text.starts_with("error: ") == reached);
  }
  CHECK(k > 5);
}

TEST_CASE("interrupted and short calls are continued") {
  const TempDir folder;
  write_text(folder.file("a"), "0123456789");
  const int outcome = GENERATE(EINTR, kHalf);
  for (int k = 1; k < 10; ++k) {
    const FaultAt fault(k, outcome);
    CAPTURE(k, outcome);
    CHECK(read_at(*InputFile::open(folder.file("a")).value(), 0, 10) == "0123456789");
  }
}

TEST_CASE("the files that a thread opens are collected") {
  const TempDir folder;
  write_text(folder.file("a"), "a");
  write_text(folder.file("b"), "b");
  const OpenedFiles outer;
  REQUIRE(InputFile::open(folder.file("a")));
  {
    const OpenedFiles inner;
    REQUIRE(InputFile::open(folder.file("b")));
    REQUIRE(InputFile::open(folder.file("b")));
    CHECK(inner.paths() == std::vector<std::string>{folder.file("b")});
  }
  CHECK_FALSE(InputFile::open(folder.file("missing")));
  CHECK(outer.paths() == std::vector<std::string>{folder.file("a"), folder.file("b")});
}
