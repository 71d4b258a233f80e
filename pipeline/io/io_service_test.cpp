#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <future>
#include <numeric>

#include "pipeline/io/io_service.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/uring.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Returns both kinds, or only the one that is available.
std::vector<IoKind> kinds() {
  const std::string why = why_no_uring();
  if (why.empty()) return {IoKind::kThreads, IoKind::kUring};
  WARN("io_uring is skipped: " << why);
  return {IoKind::kThreads};
}

std::unique_ptr<IoService> started(IoKind kind) { return std::move(IoService::start(kind)).value(); }

Status read_now(IoService& service, const InputFile& file, std::uint64_t offset, std::span<std::byte> into) {
  std::promise<Status> result;
  service.read(file, offset, into, [&](Status status) { result.set_value(std::move(status)); });
  return result.get_future().get();
}

Status write_now(IoService& service, AtomicFile& file, std::uint64_t offset, std::string_view text) {
  std::promise<Status> result;
  service.write(file, offset, as_bytes(text), [&](Status status) { result.set_value(std::move(status)); });
  return result.get_future().get();
}

std::string pattern(std::size_t bytes) {
  std::string text(bytes, 0);
  std::uint64_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
  return text;
}

// Makes system call `number` fail with `errno_value` in this process from now on. Returns false if that is impossible.
bool forbid(unsigned number, unsigned errno_value) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errno_value),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

enum Answer : int { kAsExpected, kNoFilter, kUringRuns, kOtherError, kNoThreads };

// Returns the answer of a process in which system call `number` is forbidden.
Answer answer_where_forbidden(unsigned number, unsigned errno_value) {
  if (!forbid(number, errno_value)) return kNoFilter;
  const auto uring = IoService::start(IoKind::kUring);
  if (uring) return kUringRuns;
  if (uring.error().code != ExitCode::kKernel || !uring.error().what.starts_with("io_uring cannot be used: "))
    return kOtherError;
  const auto any = IoService::start(IoKind::kAuto);
  return any && any.value()->name() == "threads" ? kAsExpected : kNoThreads;
}

}  // namespace

TEST_CASE("a service reports its name") {
  CHECK(started(IoKind::kThreads)->name() == "threads");
  const auto uring = IoService::start(IoKind::kUring);
  if (uring) {
    CHECK(uring.value()->name() == "io_uring");
    CHECK(started(IoKind::kAuto)->name() == "io_uring");
  } else {
    CHECK(uring.error().code == ExitCode::kKernel);
    CHECK(uring.error().what.starts_with("io_uring cannot be used: "));
    CHECK(started(IoKind::kAuto)->name() == "threads");
  }
}

TEST_CASE("many concurrent reads of one file return its bytes") {
  const TempDir folder;
  const std::string text = pattern(1 << 20);
  write_text(folder.file("in"), text);
  const auto file = InputFile::open(folder.file("in")).value();
  for (const IoKind kind : kinds()) {
    std::string into(text.size(), 0);
    std::atomic<int> failures{0};
    auto service = started(kind);
    for (std::size_t at = 0; at < text.size(); at += 1000) {
      const std::size_t bytes = std::min<std::size_t>(1000, text.size() - at);
      service->read(*file, at, std::as_writable_bytes(std::span(into)).subspan(at, bytes),
                    [&](const Status& status) { failures += status.has_error(); });
    }
    service.reset();  // waits for all operations
    CHECK(failures == 0);
    CHECK((into == text));
  }
}

TEST_CASE("many concurrent writes, in any order, produce the file") {
  const TempDir folder;
  const std::string text = pattern(1 << 20);
  for (const IoKind kind : kinds()) {
    const std::string path = folder.file(kind == IoKind::kUring ? "uring" : "threads");
    auto file = AtomicFile::create(path, text.size() + 2, {}).value();
    std::atomic<int> failures{0};
    auto service = started(kind);
    for (std::size_t i = 0; i < text.size() / 4096; ++i) {
      const std::size_t at = i * 7919 % (text.size() / 4096) * 4096;
      service->write(*file, 2 + at, as_bytes(text).subspan(at, 4096),
                     [&](const Status& status) { failures += status.has_error(); });
    }
    service.reset();
    CHECK(failures == 0);
    REQUIRE(file->seal(as_bytes("HH"), text.size()));
    CHECK((read_text(path) == "HH" + text));
  }
}

TEST_CASE("a completion may start operations, and destruction waits for those too") {
  const TempDir folder;
  write_text(folder.file("in"), pattern(4096));
  const auto file = InputFile::open(folder.file("in")).value();
  for (const IoKind kind : kinds()) {
    std::atomic<int> completions{0};
    std::array<std::byte, 64> into;
    auto service = started(kind);
    IoService& running = *service;
    std::function<void(Status)> next = [&](const Status&) {
      if (++completions < 100) running.read(*file, 0, into, next);
    };
    running.read(*file, 0, into, next);
    service.reset();
    CHECK(completions == 100);
  }
}

TEST_CASE("an operation of zero bytes completes") {
  const TempDir folder;
  write_text(folder.file("in"), "abc");
  const auto input = InputFile::open(folder.file("in")).value();
  for (const IoKind kind : kinds()) {
    const auto service = started(kind);
    const auto output = AtomicFile::create(folder.file("out"), 4, {}).value();
    CHECK(read_now(*service, *input, 3, {}));
    CHECK(write_now(*service, *output, 4, ""));
  }
}

TEST_CASE("a service returns the errors of the blocking calls") {
  const TempDir folder;
  write_text(folder.file("in"), "0123456789");
  const auto input = InputFile::open(folder.file("in")).value();
  fs::resize_file(folder.file("in"), 5);
  for (const IoKind kind : kinds()) {
    const auto service = started(kind);
    const auto output = AtomicFile::create(folder.file("out"), 4, {}).value();
    std::array<std::byte, 10> into;
    const Status shrunk = read_now(*service, *input, 0, into);
    const Status beyond = read_now(*service, *input, 10, std::span(into).first(1));
    const Status outside = write_now(*service, *output, 3, "xx");
    CHECK(shrunk.error().what == "the file ends before the 5 bytes at byte 0x5");
    CHECK(beyond.error().what == "the file ends before the 1 bytes at byte 0xa");
    CHECK(outside.error().code == ExitCode::kInternal);
  }
}

TEST_CASE("writes through a service count as written") {
  const TempDir folder;
  for (const IoKind kind : kinds()) {
    const auto service = started(kind);
    const auto output = AtomicFile::create(folder.file("out"), 10, {}).value();
    REQUIRE(write_now(*service, *output, 2, "data"));
    CHECK(output->written() == 4);
  }
}

TEST_CASE("a call that fails on a service thread reaches the completion") {
  const TempDir folder;
  write_text(folder.file("in"), "0123456789");
  const auto input = InputFile::open(folder.file("in")).value();
  const auto output = AtomicFile::create(folder.file("out"), 10, {}).value();
  const auto service = started(IoKind::kThreads);
  std::array<std::byte, 10> into;
  {
    const FaultAt fault(1, EIO);
    CHECK(read_now(*service, *input, 0, into).error().code == ExitCode::kIo);
  }
  {
    const FaultAt fault(1, ENOSPC);
    const Status status = write_now(*service, *output, 0, "0123456789");
    CHECK(status.error().code == ExitCode::kIo);
    CHECK(status.error().what == "cannot write 10 bytes at byte 0x0: No space left on device");
  }
}

// As in containers: io_uring is forbidden by a system call filter, at setup or only on use.
TEST_CASE("if io_uring is forbidden, threads replace it, and requesting it is an error") {
  const unsigned number = GENERATE(SYS_io_uring_setup, SYS_io_uring_enter);
  const unsigned errno_value = GENERATE(EPERM, ENOSYS);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(answer_where_forbidden(number, errno_value));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GGUFMILL_SKIP("system calls cannot be filtered here");
  CHECK(WEXITSTATUS(status) == kAsExpected);
}
