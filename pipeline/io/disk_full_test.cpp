// A full disk, and a limit on the size of files.

#include <sys/mount.h>
#include <sys/resource.h>
#include <csignal>

#include <algorithm>
#include <cstring>
#include <future>

#include "pipeline/io/io.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/services.h"
#include "pipeline/io/store_scheme.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Names = std::vector<std::string>;

// A disk of one megabyte, or of `size`, if mounting one is permitted.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size = "size=1m")
      : mounted_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, size) == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount(folder_.path().c_str());
  }
  explicit operator bool() const { return mounted_; }
  std::string file(std::string_view name) const { return folder_.file(name); }
  std::string path() const { return folder_.path(); }

 private:
  TempDir folder_;
  const bool mounted_;
};

// Limits the size of this process's files while it exists; writes beyond the limit fail instead of killing the process.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit limit { bytes, before_.rlim_max };
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  struct rlimit before_ {};
};

}  // namespace

TEST_CASE("a full disk is detected before anything is written") {
  const SmallDisk disk;
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  const auto file = AtomicFile::create(disk.file("new/out"), 2 << 20, {});
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ExitCode::kIo);
  CHECK(file.error().what == "cannot reserve 2097152 bytes: No space left on device");
  CHECK(file.error().detail == "1048576 bytes are free on the disk");
  CHECK(names_in(disk.path()).empty());
}

TEST_CASE("reserved space can be written even if another program fills the disk") {
  const SmallDisk disk;
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  const std::string half(512 << 10, 'x');
  const auto file = AtomicFile::create(disk.file("out"), half.size(), {}).value();
  CHECK_THROWS(write_text(disk.file("other"), half + half));
  CHECK(file->write(0, as_bytes(half)));
  CHECK(file->seal({}, half.size()));
}

TEST_CASE("the old file is kept if the disk fills up and nothing could be reserved") {
  const SmallDisk disk;
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  const std::string half(512 << 10, 'x');
  write_text(disk.file("out"), "old");
  SystemCalls calls = kernel_calls();
  calls.reserve = [](int, std::uint64_t, std::uint64_t) {
    errno = EOPNOTSUPP;
    return -1;
  };
  set_system_calls(&calls);
  auto file = AtomicFile::create(disk.file("out"), half.size(), {true}).value();
  set_system_calls(nullptr);
  CHECK_THROWS(write_text(disk.file("other"), half + half));
  const Status status = file->write(0, as_bytes(half));
  file.reset();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kIo);
  CHECK(names_in(disk.path()) == Names{"other", "out"});
  CHECK(read_text(disk.file("out")) == "old");
}

TEST_CASE("a file size limit is detected before anything is written") {
  const TempDir folder;
  const SizeLimit limit(4096);
  const auto file = AtomicFile::create(folder.file("out"), 5000, {});
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ExitCode::kIo);
  CHECK(file.error().what == "cannot reserve 5000 bytes: File too large");
  CHECK(file.error().detail == "the file size limit is 4096 bytes");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a limit set later makes writes fail and leaves nothing") {
  const TempDir folder;
  const IoKind kind = GENERATE(IoKind::kAuto, IoKind::kThreads);
  auto service = IoService::start(kind).value();
  auto file = AtomicFile::create(folder.file("out"), 100000, {}).value();
  const std::string text(50000, 'x');
  Status status = ok();
  {
    const SizeLimit limit(4096);
    std::promise<Status> result;
    service->write(*file, 50000, as_bytes(text), [&](Status done) { result.set_value(std::move(done)); });
    status = result.get_future().get();
  }
  file.reset();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kIo);
  CHECK(names_in(folder.path()).empty());
}

namespace {

constexpr std::uint64_t kLarge = 12 << 20;  // reserved in several pieces

// A store with one file of kLarge bytes that is reserved while it is written.
Result<std::unique_ptr<OutputStore>> store_of_large_file(const SmallDisk& disk) {
  return local_store().create({{disk.file("out"), "HHHH", kLarge}}, {});
}

}  // namespace

TEST_CASE("space that is reserved later is compared with the free space at once") {
  const SmallDisk disk("size=8m");
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  const auto file = AtomicFile::create(disk.file("out"), kLarge, {.reserve_later = true});
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ExitCode::kIo);
  CHECK(file.error().what == "cannot reserve 12582912 bytes: No space left on device");
  CHECK(names_in(disk.path()).empty());
}

TEST_CASE("a disk that fills up while space is reserved is an error of all later writes") {
  const SmallDisk disk("size=16m");
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  auto file = AtomicFile::create(disk.file("out"), kLarge, {.reserve_later = true}).value();
  CHECK(file->write(0, as_bytes("data")));
  write_text(disk.file("other"), std::string(8 << 20, 'x'));
  Result<bool> reserved = false;
  while (reserved && !reserved.value()) reserved = file->reserve_more();
  REQUIRE_FALSE(reserved);
  CHECK(reserved.error().code == ExitCode::kIo);
  CHECK(reserved.error().what == "cannot reserve 12582912 bytes: No space left on device");
  const Status written = file->write(4, as_bytes("more")), finished = file->finish({}, 4), left = file->leave();
  for (const Status* const status : {&written, &finished, &left}) {
    REQUIRE_FALSE(*status);
    CHECK(status->error().what == reserved.error().what);
  }
  file.reset();
  CHECK(names_in(disk.path()) == Names{"other"});
}

TEST_CASE("a store reserves the space of its files between writes") {
  const SmallDisk disk("size=16m");
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  auto store = store_of_large_file(disk).value();
  CHECK(store->write(0, kLarge - 4, as_bytes("data")));
  REQUIRE(store->leave());  // reserves all, as most is still to be written
  store.reset();
  CHECK_THROWS(write_text(disk.file("other"), std::string(8 << 20, 'x')));
  const Names names = names_in(disk.path());
  const auto file = std::ranges::find_if(names, [](const auto& name) { return name != "other"; });
  REQUIRE(file != names.end());
  CHECK(status_of(disk.file(*file)).blocks * 512 >= kLarge);
}

TEST_CASE("a store whose disk fills up leaves nothing but the old file") {
  const SmallDisk disk("size=16m");
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  SystemCalls calls = kernel_calls();
  calls.reserve = [](int descriptor, std::uint64_t offset, std::uint64_t bytes) {
    if (offset == 0) return kernel_calls().reserve(descriptor, offset, bytes);
    errno = ENOSPC;
    return -1;
  };
  set_system_calls(&calls);
  auto store = store_of_large_file(disk).value();
  const Status left = store->leave();
  store.reset();
  set_system_calls(nullptr);
  REQUIRE_FALSE(left);
  CHECK(left.error().what == "cannot reserve 12582912 bytes: No space left on device");
  CHECK(names_in(disk.path()).empty());
}

TEST_CASE("a store that is given up while it reserves space leaves nothing, or what it has to keep") {
  const SmallDisk disk("size=16m");
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  const bool is_kept = GENERATE(false, true);
  auto store = store_of_large_file(disk).value();
  if (is_kept) store->keep();
  store.reset();
  CHECK(names_in(disk.path()).size() == (is_kept ? 1 : 0));
}

TEST_CASE("a store whose files are written before their space is reserved publishes them") {
  const SmallDisk disk("size=16m");
  if (!disk) GGUFMILL_SKIP("a small disk cannot be mounted here");
  auto store = store_of_large_file(disk).value();
  const std::string text(kLarge - 4, 'x');
  auto service = IoService::start(IoKind::kThreads).value();
  std::promise<Status> result;
  store->start_write(*service, 0, 4, as_bytes(text), [&](Status done) { result.set_value(std::move(done)); });
  REQUIRE(result.get_future().get());
  const std::uint64_t written[] = {text.size()};
  REQUIRE(store->seal(written));
  CHECK(store->publish());
  CHECK(read_text(disk.file("out")) == "HHHH" + text);
}
