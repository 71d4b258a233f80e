#include "pipeline/io/platform/process.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "pipeline/io/platform/machine.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace ggufmill {
namespace {

std::atomic<void (*)(int)> interrupt_handler{nullptr};
std::atomic<std::int64_t> first_interrupt{0};  // milliseconds of the monotonic clock; 0: none
static_assert(std::atomic<void (*)(int)>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// `timeout`, `kill` of a group, and batch systems may send one request twice: to the program and to its group. Of two
// signals this close together, the second is not another request.
constexpr std::int64_t kOneRequest = 500;  // milliseconds

// Calls only what a signal handler may.
void on_interrupt_signal(int number) {
  const int error = errno;
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t time = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 + 1;
  std::int64_t first = 0;
  if (first_interrupt.compare_exchange_strong(first, time)) {
    interrupt_handler.load()(number);
  } else if (time - first >= kOneRequest) {
    ::signal(number, SIG_DFL);
    ::raise(number);  // delivered when this function returns
  }
  errno = error;
}

}  // namespace

void prepare_program() {
#ifdef __GLIBC__
  // By default, glibc raises this threshold as large blocks are freed, and then keeps ever larger freed blocks for each
  // thread, which no memory budget accounts for.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
  ::signal(SIGPIPE, SIG_IGN);  // a run continues if nobody reads its output; see end_unread()
  ::signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit becomes a write error
}

std::vector<std::string> program_arguments(int argc, char** argv) { return {argv + std::min(argc, 1), argv + argc}; }

void on_interrupt(void (*handler)(int number)) {
  interrupt_handler = handler;
  struct sigaction action {};
  action.sa_handler = on_interrupt_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool is_output_unread() {
  struct pollfd pipe {
    STDOUT_FILENO, POLLOUT, 0
  };
  return ::poll(&pipe, 1, 0) == 1 && (pipe.revents & (POLLERR | POLLHUP)) != 0;
}

int end_unread() {
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  return 128 + SIGPIPE;  // if the signal is blocked
}

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::uint64_t process_id() { return static_cast<std::uint64_t>(::getpid()); }

bool is_process(std::uint64_t id) { return ::kill(static_cast<pid_t>(id), 0) == 0 || errno != ESRCH; }

void allow_open_files(std::uint64_t files) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files) return;
  limit.rlim_cur = std::min<rlim_t>(files, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // on failure, opening a file reports the error
}

bool lower_priority(unsigned steps) {
  errno = 0;
  return ::nice(static_cast<int>(steps)) != -1 || errno == 0;
}

BlockedSignals::BlockedSignals() {
  static_assert(sizeof(sigset_t) <= sizeof before_);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::memcpy(before_, &before, sizeof before);
}

BlockedSignals::~BlockedSignals() {
  sigset_t before;
  std::memcpy(&before, before_, sizeof before);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace ggufmill
