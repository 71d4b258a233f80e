#include "tests/cli/command.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ggufmill {
namespace {

[[noreturn]] void give_up(const char* action) { throw std::system_error(errno, std::generic_category(), action); }

// A file without a name that takes what a command writes.
class Capture {
 public:
  Capture() : descriptor_(::memfd_create("capture", MFD_CLOEXEC)) {
    if (descriptor_ < 0) give_up("memfd_create");
  }
  ~Capture() { ::close(descriptor_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  int descriptor() const { return descriptor_; }

  std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
    std::size_t at = 0;
    while (at < text.size()) {
      const ssize_t got = ::pread(descriptor_, &text[at], text.size() - at, static_cast<off_t>(at));
      if (got <= 0) give_up("pread");
      at += static_cast<std::size_t>(got);
    }
    return text;
  }

 private:
  int descriptor_;
};

// After fork() only what is safe in a signal handler: other threads may have held locks.
[[noreturn]] void become(const char* line, const char* folder, int out, int err) {
  const int in = ::open("/dev/null", O_RDONLY);
  const bool ready = in >= 0 && ::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(err, 2) == 2 && !::chdir(folder);
  if (ready) ::execl("/bin/sh", "sh", "-c", line, nullptr);
  ::_exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) give_up("waitpid");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

CommandResult run_command(const std::string& line, const std::string& folder) {
  const Capture out, err;
  const pid_t child = ::fork();
  if (child < 0) give_up("fork");
  if (child == 0) become(line.c_str(), folder.c_str(), out.descriptor(), err.descriptor());
  const int exit = wait_for(child);
  return {out.text(), err.text(), exit};
}

}  // namespace ggufmill
