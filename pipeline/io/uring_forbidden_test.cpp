// What containers do: io_uring is forbidden by a filter of system calls, at its set-up or only when it is used.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

#include "pipeline/io/io_service.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// From now on the call `number` fails with `errno_value` in this process.
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

// What a process says in which `number` is forbidden.
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

TEST_CASE("where io_uring is forbidden, threads do its work, and asking for it is an error") {
  const unsigned number = GENERATE(SYS_io_uring_setup, SYS_io_uring_enter);
  const unsigned errno_value = GENERATE(EPERM, ENOSYS);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(answer_where_forbidden(number, errno_value));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) {
    WARN("skipped: system calls cannot be filtered here");
    return;
  }
  CHECK(WEXITSTATUS(status) == kAsExpected);
}
