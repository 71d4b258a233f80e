#include "tests/support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "tests/support/environment.h"

namespace ggufmill {
namespace {

[[noreturn]] void fail(int error, const std::string& action) {
  throw std::system_error(error, std::generic_category(), action);
}

// Captures the output of a program in memory, so that it never blocks on a full pipe while the other one is read.
class Capture {
 public:
  Capture() : file_(::memfd_create("output", MFD_CLOEXEC)) {
    if (file_ < 0) fail(errno, "memfd_create");
  }
  ~Capture() { ::close(file_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  int file() const { return file_; }

  std::string text() const {
    std::string all(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t got = ::pread(file_, all.data(), all.size(), 0);
    if (got != static_cast<ssize_t>(all.size())) fail(errno, "read what a program printed");
    return all;
  }

 private:
  int file_;
};

// Returns null-terminated pointers, as exec takes them. The strings must outlive the result.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::string_view name_of(std::string_view setting) { return setting.substr(0, setting.find('=')); }

// Returns this process's environment, with the settings replacing variables of the same name.
std::vector<std::string> environment(const std::vector<std::string>& settings) {
  std::vector<std::string> all = settings;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::none_of(settings.begin(), settings.end(),
                     [&](const std::string& setting) { return name_of(setting) == name_of(*entry); }))
      all.emplace_back(*entry);
  return all;
}

pid_t start(std::vector<std::string> words, const std::string& folder, std::vector<std::string> settings,
            const Capture& out, const Capture& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.file(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.file(), STDERR_FILENO);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  const int error = ::posix_spawn(&child, words.front().c_str(), &actions, nullptr, pointers(words).data(),
                                  pointers(settings).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(error, "start " + words.front());
  return child;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& words, const std::string& folder,
                          const std::vector<std::string>& settings) {
  const Capture out, err;
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = start(words, folder, environment(settings), out, err);
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) != child)
    if (errno != EINTR) fail(errno, "wait for " + words.front());
  ProcessResult result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  result.peak_memory_kib = usage.ru_maxrss;
  result.out = out.text();
  result.err = err.text();
  return result;
}

std::string decompressed(const std::string& path) { return run_process({"/usr/bin/env", "xz", "-dc", path}).out; }

void Environment::put(const std::string& name, const char* value) {
  value ? ::setenv(name.c_str(), value, 1) : ::unsetenv(name.c_str());
}

}  // namespace ggufmill
