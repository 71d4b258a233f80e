#include "pipeline/kernels/check/guarded_buffer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "pipeline/io/platform/process.h"
#include "tests/support/catch.h"

namespace ggufmill {

TEST_CASE("guarded bytes lie against the page that was asked for") {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  GuardedBuffer front(18, GuardedBuffer::Side::kFront);
  GuardedBuffer end(18, GuardedBuffer::Side::kEnd);
  CHECK(reinterpret_cast<std::uintptr_t>(front.bytes().data()) % page == 0);
  CHECK((reinterpret_cast<std::uintptr_t>(end.bytes().data()) + 18) % page == 0);
  CHECK(end.bytes()[17] == std::byte{0xa5});
  GuardedBuffer apart(18, GuardedBuffer::Side::kEnd, 4);
  CHECK((reinterpret_cast<std::uintptr_t>(apart.bytes().data()) + 22) % page == 0);
}

TEST_CASE("touching what lies beside guarded bytes ends the program") {
  const auto side = GENERATE(GuardedBuffer::Side::kFront, GuardedBuffer::Side::kEnd);
  GuardedBuffer buffer(18, side);
  volatile std::byte* beside =
      side == GuardedBuffer::Side::kFront ? buffer.bytes().data() - 1 : buffer.bytes().data() + 18;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);  // the signal is expected: bypass the handlers of Catch2 and sanitizers
    *beside = std::byte{0};
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("a stopped access is described, even if another process makes it") {
  AccessReport report;
  CHECK(report.text().empty());
  const auto touch = [&](std::ptrdiff_t offset, bool write) {
    ask_child([&]() -> std::string {
      report.watch();
      GuardedBuffer buffer(18, offset < 0 ? GuardedBuffer::Side::kFront : GuardedBuffer::Side::kEnd, 0, "target");
      volatile std::byte* const at = buffer.bytes().data() + offset;
      if (write)
        *at = std::byte{0};
      else
        static_cast<void>(*at);
      return "survived";
    });
    return report.text();
  };
#if defined(__x86_64__)
  CHECK(touch(18, true) == "writes to byte 1 after the end of the target");
  CHECK(touch(20, false) == "reads byte 3 after the end of the target");
  CHECK(touch(-2, true) == "writes to byte 2 before the target");
#else
  CHECK(touch(18, true) == "reads or writes byte 1 after the end of the target");
#endif
}

}  // namespace ggufmill
