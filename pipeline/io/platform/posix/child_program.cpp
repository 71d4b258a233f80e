#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/posix/calls.h"
#include "pipeline/io/platform/process.h"

extern char** environ;

namespace ggufmill {
namespace {

struct Pipe {
  Descriptor read, write;
  bool open() {
    int ends[2];
    if (posix::make_pipe(ends) != 0) return false;
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    return true;
  }
};

// The environment of a program, in the form that the system takes.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    texts_.reserve(variables.size());
    for (const auto& [name, value] : variables) texts_.push_back(name + "=" + value);
    pointers_.reserve(texts_.size() + 1);
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// Becomes the program; returns errno. Called between fork() and exec(), where little is allowed.
int become(const std::vector<char*>& arguments, const Environment& variables, pid_t parent, const Pipe& out,
           const Pipe& err) {
  if (!posix::end_with(parent)) return errno;
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0 || ::dup2(input, STDIN_FILENO) < 0) return errno;
  if (::dup2(out.write.get(), STDOUT_FILENO) < 0 || ::dup2(err.write.get(), STDERR_FILENO) < 0) return errno;
  environ = const_cast<char**>(variables.get());  // only Linux has execvpe()
  ::execvp(arguments[0], arguments.data());
  return errno;
}

// Starts a program that writes to the pipes. Returns -1 on failure, with an errno in `error`.
pid_t start_child(const std::vector<char*>& arguments, const Environment& variables, const Pipe& out, const Pipe& err,
                  int& error) {
  Pipe problems;
  error = 0;
  const pid_t parent = ::getpid(), child = problems.open() ? ::fork() : -1;
  if (child < 0) return error = errno, -1;
  if (child == 0) {
    const int problem = become(arguments, variables, parent, out, err);
    static_cast<void>(!::write(problems.write.get(), &problem, sizeof problem));
    ::_exit(127);
  }
  problems.write = Descriptor();
  if (retry([&] { return ::read(problems.read.get(), &error, sizeof error); }) <= 0) return child;
  retry([&] { return ::waitpid(child, nullptr, 0); });
  return -1;
}

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

class PosixProgram final : public ChildProgram {
 public:
  PosixProgram(pid_t id, Descriptor out, Descriptor err) : id_(id), ends_{std::move(out), std::move(err)} {
    for (std::size_t i = 0; i < ends_.size(); ++i) polled_[i] = {ends_[i].get(), POLLIN, 0};
  }

  bool read(int milliseconds, const Printed& printed) override {
    if (!is_open()) return false;
    const int ready = retry([&] { return ::poll(polled_.data(), polled_.size(), milliseconds); });
    if (ready < 0) return false;
    for (std::size_t i = 0; i < polled_.size() && ready > 0; ++i) {
      if (polled_[i].fd < 0 || polled_[i].revents == 0) continue;
      const ssize_t count = retry([&] { return ::read(polled_[i].fd, buffer_.data(), buffer_.size()); });
      if (count <= 0)
        polled_[i].fd = -1;
      else
        printed(i == 0 ? Stream::kOut : Stream::kErr, {buffer_.data(), static_cast<std::size_t>(count)});
    }
    return is_open();
  }

  void ask_to_end() override { ::kill(id_, SIGTERM); }
  void kill() override { ::kill(id_, SIGKILL); }

  std::optional<int> ended() override {
    int status = 0;
    if (!exit_code_ && ::waitpid(id_, &status, WNOHANG) == id_) exit_code_ = exit_code_of(status);
    return exit_code_;
  }

  int wait() override {
    int status = 0;
    if (exit_code_) return *exit_code_;
    if (retry([&] { return ::waitpid(id_, &status, 0); }) != id_) return -1;
    exit_code_ = exit_code_of(status);
    return *exit_code_;
  }

 private:
  bool is_open() const { return polled_[0].fd >= 0 || polled_[1].fd >= 0; }

  pid_t id_;
  std::optional<int> exit_code_;
  std::array<Descriptor, 2> ends_;
  std::array<pollfd, 2> polled_{};
  std::array<char, 4096> buffer_{};
};

}  // namespace

std::optional<std::string> find_program(const std::string& word) {
  const auto is_program = [](const std::string& path) {
    struct stat info {};
    return ::access(path.c_str(), X_OK) == 0 && !(::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode));
  };
  if (word.find('/') != word.npos) return is_program(word) ? std::optional(word) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::string_view left = path ? path : "/bin:/usr/bin";  // as execvp searches
  while (true) {
    const std::string_view folder = left.substr(0, left.find(':'));
    const std::string program = (folder.empty() ? "." : std::string(folder)) + "/" + word;
    if (is_program(program)) return program;
    if (folder.size() == left.size()) return std::nullopt;
    left.remove_prefix(folder.size() + 1);
  }
}

Variables own_variables() {
  Variables variables;
  for (char** own = environ; own && *own; ++own) {
    const std::string_view text = *own;
    if (const std::size_t end = text.find('='); end != text.npos)
      variables.emplace_back(text.substr(0, end), text.substr(end + 1));
  }
  return variables;
}

std::unique_ptr<ChildProgram> ChildProgram::start(const std::vector<std::string>& words, const Variables& variables,
                                                  int& error, const char*& action) {
  Pipe out, err;
  if (!out.open() || !err.open()) {
    error = errno;
    action = "create a pipe to the program";
    return nullptr;
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const Environment environment(variables);
  action = "run the program";
  const pid_t child = start_child(arguments, environment, out, err, error);
  if (child < 0) return nullptr;
  return std::make_unique<PosixProgram>(child, std::move(out.read), std::move(err.read));
}

}  // namespace ggufmill
