// A full disk, and a limit on the size of files.

#include <sys/mount.h>
#include <sys/resource.h>
#include <csignal>

#include <cstring>
#include <future>

#include "pipeline/io/io.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/services.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Names = std::vector<std::string>;

// A disk of one megabyte, if mounting one is permitted.
class SmallDisk {
 public:
  SmallDisk() : mounted_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=1m") == 0) {}
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
  calls.reserve = [](int, std::uint64_t) {
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
