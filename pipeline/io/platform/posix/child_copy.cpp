// Work in a forked copy of this process.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "pipeline/io/platform/posix/calls.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kEnd = '\0';  // terminates every result

// Disables core files, messages of the loader and this program's signal handlers, and limits the CPU time.
void give_up_everything(rlim_t cpu_seconds) {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, file);
  const struct rlimit none { 0, 0 }, time{cpu_seconds, cpu_seconds};
  ::setrlimit(RLIMIT_CORE, &none);
  ::setrlimit(RLIMIT_CPU, &time);
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU, SIGINT, SIGTERM})
    ::signal(number, SIG_DFL);
}

constexpr int kNoMemory = 75;  // exit status of a child that ran out of memory

// No exception leaves the child: the frames above belong to the parent's code.
std::string text_of(const std::function<std::string()>& work) try { return work(); } catch (const std::bad_alloc&) {
  ::_exit(kNoMemory);
} catch (...) {
  ::_exit(1);
}

[[noreturn]] void answer(const std::function<std::string()>& work, const ChildLimits& limits, int to) {
  give_up_everything(limits.cpu_seconds);
  std::string text = text_of([&] { return work() + kEnd; });
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(to, text.data() + at, text.size() - at);
    if (wrote < 0 && errno != EINTR) break;
    at += static_cast<std::size_t>(std::max<ssize_t>(0, wrote));
  }
  ::_exit(0);
}

// Reads until the result is complete or the child's end is closed; `in_time` is false if neither happened.
std::string read_all(int from, const ChildLimits& limits, bool& in_time) {
  const Clock::time_point end = Clock::now() + limits.patience;
  std::string text;
  for (char part[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    struct pollfd ready {
      from, POLLIN, 0
    };
    const int events = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (events < 0 && errno == EINTR) continue;
    in_time = events > 0;
    if (!in_time) return text;
    const ssize_t got = ::read(from, part, sizeof part);
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
    text.append(part, static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    if (!text.empty() && text.back() == kEnd) return text;
  }
}

// Returns how the child ended; throws std::bad_alloc if it ran out of memory. If this program ignores SIGCHLD, the
// system keeps no status.
std::string end_of(pid_t child) {
  int status = 0;
  pid_t waited = 0;
  while ((waited = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (waited == child && WIFSIGNALED(status) && WTERMSIG(status) != SIGXCPU && WTERMSIG(status) != SIGKILL)
    return fmt::format("is killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  if (waited == child && WIFSIGNALED(status)) return kOutOfTime;
  if (waited == child && WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory) throw std::bad_alloc();
  return "exits early";
}

}  // namespace

ChildAnswer ask_child(const std::function<std::string()>& work, const ChildLimits& limits,
                      const std::vector<std::string>&) {
  int ends[2];
  if (posix::make_pipe(ends) != 0) return {{}, fmt::format("cannot be started: {}", std::strerror(errno))};
  const pid_t child = ::fork();
  if (child == 0) answer(work, limits, ends[1]);
  const int fork_error = errno;
  ::close(ends[1]);
  ChildAnswer got;
  bool in_time = false;
  if (child > 0) got.text = read_all(ends[0], limits, in_time);
  ::close(ends[0]);
  if (child < 0 && fork_error == ENOMEM) throw std::bad_alloc();
  if (child < 0) return {{}, fmt::format("cannot be started: {}", std::strerror(fork_error))};
  if (!in_time) ::kill(child, SIGKILL);
  std::string end = end_of(child);
  if (got.text.empty() || got.text.back() != kEnd) return {{}, std::move(end)};
  got.text.pop_back();
  return got;
}

}  // namespace ggufmill
