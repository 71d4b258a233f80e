// Kills a process while it writes: the output must be absent, old, or complete (DESIGN 1, promise 2).

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/temp_dir.h"
#include "tests/support/version.h"

using namespace ggufmill;

namespace {

// Runs `body` in a child process whose exit code is its result. Calls `meanwhile` with the ID of the child.
int run_child(
    const std::function<int()>& body, const std::function<void(pid_t)>& meanwhile = [](pid_t) {}) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body());
  meanwhile(child);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

bool is_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

}  // namespace

TEST_CASE("killed before any system call, an output is absent, old or whole, and the next run makes it") {
  const bool exists = GENERATE(false, true);
  const std::string old = exists ? version('o') : "";
  int k = 1;
  for (bool killed = true; killed; ++k) {
    const TempDir folder;
    const std::string path = folder.file("out");
    if (exists) write_text(path, old);
    const int status = run_child([&] {
      std::atomic<int> calls{0};
      const HookedCalls hooked([&] { return ++calls == k ? std::raise(SIGKILL) : 0; });
      return write_version(path, 'n', IoKind::kThreads) ? 0 : 1;
    });
    killed = is_killed(status);
    CAPTURE(k, exists, status);
    CHECK((killed || status == 0));
    const std::string text = text_or_nothing(path);
    CHECK((text == version('n') || (killed && text == old)));
    CHECK(has_only_temporaries(folder));
    CHECK(write_version(path, 'x', IoKind::kThreads));
    CHECK((read_text(path) == version('x')));
  }
  CHECK(k > 15);
}

TEST_CASE("killed at any time, an output that is replaced over and over is always one whole version") {
  const TempDir folder;
  const std::string path = folder.file("out");
  const IoKind kind = GENERATE(IoKind::kThreads, IoKind::kAuto);
  write_text(path, version('a'));
  for (int round = 0; round < 25; ++round) {
    const int status = run_child(
        [&] {
          for (char letter = 'b';; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
            if (!write_version(path, letter, kind)) return 1;
        },
        [&](pid_t child) {
          std::this_thread::sleep_for(std::chrono::microseconds(1500 * round + 137 * (round % 7)));
          ::kill(child, SIGKILL);
        });
    CAPTURE(round, status);
    CHECK(is_killed(status));
    const std::string text = read_text(path);
    REQUIRE_FALSE(text.empty());
    CHECK((text == version(text[0])));
    CHECK(has_only_temporaries(folder));
  }
}
