#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "pipeline/io/atomic_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/temporary_file.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Names = std::vector<std::string>;

std::unique_ptr<AtomicFile> created(const std::string& path, std::uint64_t bytes, bool overwrite = false) {
  auto file = AtomicFile::create(path, bytes, {overwrite});
  if (!file) FAIL(render(file.error()));
  return std::move(file).value();
}

// Writes "HHdata", with zeros before the data if `bytes` leaves a gap.
Status write_whole(AtomicFile& file, std::uint64_t bytes) {
  BOOST_OUTCOME_TRY(file.write(bytes - 4, as_bytes("data")));
  return file.seal(as_bytes("HH"), 4);
}

Status write_file(const std::string& path, const AtomicFile::Options& options) {
  BOOST_OUTCOME_TRY(std::unique_ptr<AtomicFile> file, AtomicFile::create(path, 10, options));
  BOOST_OUTCOME_TRY(file->write(2, as_bytes("data")));
  BOOST_OUTCOME_TRY(file->write(6, as_bytes("more")));
  return file->seal(as_bytes("HH"), 8);
}

}  // namespace

TEST_CASE("a sealed file exists, is complete, and has no leftover files") {
  const TempDir folder;
  auto file = created(folder.file("out.gguf"), 8);
  CHECK(names_in(folder.path()).size() == 1);
  CHECK(names_in(folder.path())[0].starts_with(".out.gguf.ggufmill-"));
  REQUIRE(write_whole(*file, 8));
  CHECK(names_in(folder.path()) == Names{"out.gguf"});
  CHECK(read_text(folder.file("out.gguf")) == std::string("HH\0\0data", 8));
}

TEST_CASE("a file that is not sealed leaves nothing") {
  const TempDir folder;
  created(folder.file("a/b/out.gguf"), 6);
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("files in one new folder leave nothing either, in whichever order they go") {
  std::vector<std::size_t> order{0, 1, 2};
  do {
    const TempDir folder;
    std::array files{created(folder.file("a/x"), 6), created(folder.file("a/b/y"), 6),
                     created(folder.file("a/b/z"), 6)};
    for (const std::size_t i : order) files[i].reset();
    CAPTURE(order);
    CHECK(names_in(folder.path()).empty());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("missing folders are created") {
  const TempDir folder;
  const std::string path = GENERATE(as<std::string>(), "a/out", "a/b/c/out", "a//b/out", "a/../b/out");
  REQUIRE(write_whole(*created(folder.file(path), 6), 6));
  CHECK(read_text(folder.file(path)) == "HHdata");
}

TEST_CASE("a file is created in the current folder") {
  const TempDir folder;
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  const Status status = write_whole(*created("out", 6), 6);
  fs::current_path(before);
  CHECK(status);
  CHECK(names_in(folder.path()) == Names{"out"});
}

TEST_CASE("a new file has the permissions that the umask allows") {
  const TempDir folder;
  const mode_t before = ::umask(027);
  REQUIRE(write_whole(*created(folder.file("out"), 6), 6));
  ::umask(before);
  CHECK(status_of(folder.file("out")).mode == 0640);
}

TEST_CASE("an overwritten file is the old one until the new one is sealed") {
  const TempDir folder;
  write_text(folder.file("out"), "old");
  ::chmod(folder.file("out").c_str(), 0600);
  auto file = created(folder.file("out"), 6, true);
  REQUIRE(file->write(2, as_bytes("data")));
  CHECK(read_text(folder.file("out")) == "old");
  REQUIRE(file->seal(as_bytes("HH"), 4));
  CHECK(read_text(folder.file("out")) == "HHdata");
  CHECK((fs::status(folder.file("out")).permissions()) == fs::perms(0600));
}

TEST_CASE("a name of maximum length works, a longer one is refused immediately") {
  const TempDir folder;
  const std::string name(255, 'n');
  REQUIRE(write_whole(*created(folder.file(name), 6), 6));
  CHECK(names_in(folder.path()) == Names{name});
  CHECK(AtomicFile::create(folder.file(name + "n"), 6, {}).error().code == ExitCode::kIo);
}

TEST_CASE("two long names with the same prefix are two files") {
  const TempDir folder;
  const std::string beginning(240, 'a');
  AtomicFile::Options options;
  options.identity = std::string(32, 'f');
  const auto one = AtomicFile::create(folder.file(beginning + "1"), 1, options);
  const auto two = AtomicFile::create(folder.file(beginning + "2"), 1, options);
  REQUIRE(one);
  CHECK(two);
}

TEST_CASE("a file that appears meanwhile is not lost") {
  const TempDir folder;
  SystemCalls calls = kernel_calls();
  const int supported = GENERATE(2, 1, 0);  // 2: rename without replacing; 1: hard links; 0: neither
  if (supported < 2)
    calls.rename = [](int from, const char* a, int to, const char* b, Rename how) {
      errno = EINVAL;
      return how != Rename::kReplace ? -1 : kernel_calls().rename(from, a, to, b, how);
    };
  if (supported < 1)
    calls.link = [](int, const char*, int, const char*) {
      errno = EPERM;
      return -1;
    };
  set_system_calls(&calls);
  auto late = created(folder.file("out"), 6);
  auto first = created(folder.file("out"), 6);
  const Status sealed = write_whole(*first, 6);
  write_text(folder.file("out"), "theirs");
  const Status refused = write_whole(*late, 6);
  late.reset();
  first.reset();
  set_system_calls(nullptr);
  CHECK(sealed);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(read_text(folder.file("out")) == "theirs");
  CHECK(names_in(folder.path()) == Names{"out"});
}

TEST_CASE("space is reserved even if the file system cannot allocate") {
  const TempDir folder;
  SystemCalls calls = kernel_calls();
  calls.reserve = [](int, std::uint64_t, std::uint64_t) {
    errno = EOPNOTSUPP;
    return -1;
  };
  set_system_calls(&calls);
  auto file = created(folder.file("out"), 8);
  const auto huge = AtomicFile::create(folder.file("huge"), 1ull << 62, {});
  set_system_calls(nullptr);
  REQUIRE(write_whole(*file, 8));
  CHECK(read_text(folder.file("out")) == std::string("HH\0\0data", 8));
  REQUIRE_FALSE(huge);
  CHECK(huge.error().code == ExitCode::kIo);
  CHECK(huge.error().what == "cannot reserve 4611686018427387904 bytes: No space left on device");
}

TEST_CASE("nothing is published if there are too few or too many bytes") {
  const TempDir folder;
  auto file = created(folder.file("out"), 6);
  REQUIRE(file->write(2, as_bytes("dat")));
  const Status status = file->seal(as_bytes("HH"), 4);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kInternal);
  CHECK_FALSE(file->seal(as_bytes("HHHH"), 3));
  CHECK_FALSE(file->write(5, as_bytes("xx")));
  CHECK_FALSE(file->write(~0ull, as_bytes("xx")));
  CHECK_FALSE(fs::exists(folder.file("out")));
}

TEST_CASE("the header follows the data to the disk, the name follows the header, the folder follows the name") {
  const TempDir folder;
  static std::string order;
  order.clear();
  SystemCalls calls = kernel_calls();
  calls.write = [](int descriptor, const void* from, std::size_t bytes, std::uint64_t offset) {
    order += offset == 0 ? "header " : "data ";
    return kernel_calls().write(descriptor, from, bytes, offset);
  };
  calls.sync = [](int descriptor) {
    FileStatus info;
    order += kernel_calls().status(descriptor, &info) == 0 && info.is_folder() ? "fsync-folder " : "fsync ";
    return kernel_calls().sync(descriptor);
  };
  calls.rename = [](int from, const char* a, int to, const char* b, Rename how) {
    order += "rename ";
    return kernel_calls().rename(from, a, to, b, how);
  };
  set_system_calls(&calls);
  const Status status = write_whole(*created(folder.file("out"), 6), 6);
  set_system_calls(nullptr);
  CHECK(status);
  CHECK(order == "data fsync header fsync rename fsync-folder ");
}

TEST_CASE("an empty file can be created") {
  const TempDir folder;
  REQUIRE(created(folder.file("out"), 0)->seal({}, 0));
  CHECK(read_text(folder.file("out")).empty());
}

// As in SQLite's tests: for every k, the k-th system call fails.
TEST_CASE("whichever call fails, the old file is complete and no temporary file is left") {
  const int errno_value = GENERATE(EIO, ENOSPC);
  int k = 1, sealed = 0;
  for (bool reached = true; reached; ++k) {
    const TempDir folder;
    write_text(folder.file("in"), "weights");
    write_text(folder.file("out"), "old");
    Status status = ok();
    {
      FaultAt fault(k, errno_value);
      status = write_file(folder.file("out"), {true});
      reached = fault.reached();
    }
    CAPTURE(k, errno_value);
    CHECK(status.has_error() == reached);
    if (!status) CHECK(status.error().code == ExitCode::kIo);
    CHECK(names_in(folder.path()) == Names{"in", "out"});
    const std::string text = read_text(folder.file("out"));
    if (reached && text != "old") CHECK(++sealed == 1);  // only if the last call failed, the fsync of the folder
    CHECK((text == "old" || text == "HHdatamore"));
  }
  CHECK(k > 12);
}

TEST_CASE("whichever call fails, no new file and no new folder is left") {
  int k = 1, sealed = 0;
  for (bool reached = true; reached; ++k) {
    const TempDir folder;
    Status status = ok();
    {
      FaultAt fault(k, EIO);
      status = write_file(folder.file("a/b/out"), {});
      reached = fault.reached();
    }
    CAPTURE(k);
    CHECK(status.has_error() == reached);
    if (!status) CHECK(status.error().code == ExitCode::kIo);
    const bool empty = names_in(folder.path()).empty();
    if (reached && !empty) CHECK(++sealed == 1);
    if (!empty) CHECK(names_in(folder.file("a/b")) == Names{"out"});
    if (!empty) CHECK(read_text(folder.file("a/b/out")) == "HHdatamore");
  }
  CHECK(k > 15);
}

TEST_CASE("whichever call is interrupted or short, the file is written") {
  const int outcome = GENERATE(EINTR, kHalf);
  int k = 1;
  for (bool reached = true; reached; ++k) {
    const TempDir folder;
    FaultAt fault(k, outcome);
    const Status status = write_file(folder.file("a/out"), {});
    reached = fault.reached();
    CAPTURE(k, outcome);
    CHECK(status);
    CHECK(read_text(folder.file("a/out")) == "HHdatamore");
  }
}

TEST_CASE("an interrupted removal is retried: no temporary file and no new folder is left") {
  const TempDir folder;
  auto file = AtomicFile::create(folder.file("a/b/out"), 10, {});
  REQUIRE(file);
  {
    std::atomic<unsigned> calls{0};
    const HookedCalls interrupted([&] { return ++calls % 2 == 1 ? EINTR : 0; });
    file.value().reset();
  }
  CHECK(names_in(folder.path()).empty());
}

namespace {

// Objects that somebody else may have placed where a run looks for its leftover files.
enum class Trap { kHardLink, kSymbolicLink, kOtherUser, kGroupWritable, kOthersWritable, kFolder, kPipe };

// Places the trap at `path`; returns the file that a careless run would write to.
std::string set_trap(Trap trap, const std::string& path, const TempDir& folder) {
  const std::string victim = folder.file("victim");
  write_text(victim, "untouched");
  ::chmod(victim.c_str(), 0644);
  int made = -1;
  if (trap == Trap::kFolder) made = ::mkdir(path.c_str(), 0755);
  if (trap == Trap::kPipe) made = ::mkfifo(path.c_str(), 0644);
  if (trap == Trap::kHardLink) made = ::link(victim.c_str(), path.c_str());
  if (trap == Trap::kSymbolicLink) made = ::symlink(victim.c_str(), path.c_str());
  if (made == 0) return victim;
  write_text(path, "untouched");
  ::chmod(path.c_str(), trap == Trap::kGroupWritable ? 0664 : trap == Trap::kOthersWritable ? 0646 : 0644);
  if (trap == Trap::kOtherUser) REQUIRE(::chown(path.c_str(), 4711, 4711) == 0);
  return path;
}

Trap any_trap() {
  const Trap trap = GENERATE(Trap::kHardLink, Trap::kSymbolicLink, Trap::kOtherUser, Trap::kGroupWritable,
                             Trap::kOthersWritable, Trap::kFolder, Trap::kPipe);
  return trap == Trap::kOtherUser && ::geteuid() != 0 ? Trap::kHardLink : trap;  // only root can give files away
}

}  // namespace

TEST_CASE("another user's file under the temporary name is not touched, and the output is written next to it") {
  const TempDir folder;
  const std::string temporary = temporary_path(folder.file("out"), "id");
  const std::string victim = set_trap(any_trap(), temporary, folder);
  auto file = AtomicFile::create(folder.file("out"), 6, {.identity = "id"});
  if (!file) FAIL(render(file.error()));
  CHECK(file.value()->warning().find("is not touched (") != std::string::npos);
  REQUIRE(write_whole(*file.value(), 6));
  CHECK(read_text(folder.file("out")) == "HHdata");
  CHECK(read_text(victim) == "untouched");
  CHECK(status_of(folder.file("out")).owner == own_user());
  CHECK_NOTHROW(status_of(temporary, Links::kNoFollow));
}

TEST_CASE("no run attaches to another user's file") {
  const TempDir folder;
  const std::string victim = set_trap(any_trap(), temporary_path(folder.file("out"), "id"), folder);
  const auto file = AtomicFile::create(folder.file("out"), 9, {.identity = "id", .attach = true});
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ExitCode::kIo);
  CHECK(file.error().what == "the file left next to it by an earlier run is not owned exclusively by this user");
  CHECK(read_text(victim) == "untouched");
}

TEST_CASE("nobody else may write to a file until it has its name") {
  const TempDir folder;
  const mode_t before = ::umask(0);
  auto file = AtomicFile::create(folder.file("out"), 6, {.identity = "id"});
  const unsigned unfinished = status_of(temporary_path(folder.file("out"), "id")).mode;
  const Status written = write_whole(*file.value(), 6);
  ::umask(before);
  REQUIRE(written);
  CHECK(unfinished == 0644);
  CHECK(status_of(folder.file("out")).mode == 0666);
}

TEST_CASE("a file that was truncated while it was written is not published") {
  const TempDir folder;
  auto file = AtomicFile::create(folder.file("out"), 10, {.identity = "id"});
  REQUIRE(file.value()->write(2, as_bytes("datamore")));
  REQUIRE(::truncate(temporary_path(folder.file("out"), "id").c_str(), 4) == 0);
  const Status sealed = file.value()->seal(as_bytes("HH"), 8);
  REQUIRE_FALSE(sealed);
  CHECK(sealed.error().code == ExitCode::kIo);
  CHECK(sealed.error().what == "another program changed the file while it was being written: it has 4 bytes, not 10");
  CHECK_FALSE(fs::exists(folder.file("out")));
}

TEST_CASE("a file that was truncated and grew again while it was written counts as changed") {
  constexpr std::size_t kBytes = 1 << 20;
  const TempDir folder;
  auto file = AtomicFile::create(folder.file("out"), kBytes, {.identity = "id"});
  const std::string temporary = temporary_path(folder.file("out"), "id"), half(kBytes / 2, 'x');
  if (status_of(temporary).blocks * 512 < kBytes) GGUFMILL_SKIP("this file system reserves no space");
  const bool cuts = GENERATE(true, false);
  REQUIRE(file.value()->write(2, as_bytes(half.substr(2))));
  if (cuts) REQUIRE(::truncate(temporary.c_str(), 0) == 0);
  REQUIRE(file.value()->write(kBytes / 2, as_bytes(half)));
  REQUIRE(file.value()->finish(as_bytes("HH"), kBytes - 2));
  CHECK(file.value()->is_as_left().value() == !cuts);
}

TEST_CASE("a file that was changed after its seal is not published") {
  const TempDir folder;
  auto file = AtomicFile::create(folder.file("out"), 6, {.identity = "id"});
  const std::string temporary = temporary_path(folder.file("out"), "id");
  REQUIRE(file.value()->write(2, as_bytes("data")));
  REQUIRE(file.value()->finish(as_bytes("HH"), 4));
  const bool swaps = GENERATE(false, true);
  if (swaps) fs::rename(temporary, temporary + ".moved");
  wait_for_later_time(swaps ? temporary + ".moved" : temporary);
  write_text(temporary, "HHDATA");
  const Status published = file.value()->publish(false);
  REQUIRE_FALSE(published);
  CHECK(published.error().code == ExitCode::kIo);
  CHECK_FALSE(fs::exists(folder.file("out")));
}
