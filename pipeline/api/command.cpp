#include "pipeline/api/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/descriptor.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/system_calls.h"

extern char** environ;

namespace ggufmill {
namespace {

struct Pipe {
  Descriptor read, write;
  static Result<Pipe> open(const std::string& program) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return io_error(program, "create a pipe to the program", errno);
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  }
};

// Asks a program to end when `*stop` is set, and ends it if it does not.
class Stopper {
 public:
  Stopper(pid_t program, const std::atomic<bool>* stop) : program_(program), stop_(stop) {}

  // Milliseconds to wait before the next look(); -1: look() does nothing, so wait without limit.
  int pause() const { return stop_ ? 50 : -1; }
  void look() {
    if (!stop_ || !*stop_) return;
    const auto now = Clock::now();
    if (!asked_at_) {
      asked_at_ = now;
      ::kill(program_, SIGTERM);
    } else if (now - *asked_at_ > std::chrono::seconds(5)) {
      ::kill(program_, SIGKILL);
    }
  }
  bool has_asked() const { return asked_at_.has_value(); }

 private:
  using Clock = std::chrono::steady_clock;
  pid_t program_;
  const std::atomic<bool>* stop_;
  std::optional<Clock::time_point> asked_at_;
};

// Reads both pipes until both are closed, or until a program that was asked to end has ended. Returns its status if it
// has been waited for.
std::optional<int> read_both(Pipe& out, Pipe& err, pid_t program, Stopper& stopper, const CommandOptions& options,
                             CommandResult& result) {
  std::array<pollfd, 2> ends{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&result.out, &result.err};
  std::array<char, 4096> buffer{};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const int ready = retry([&] { return ::poll(ends.data(), ends.size(), stopper.pause()); });
    if (ready < 0) return {};
    stopper.look();
    // Programs that it started may hold the pipes open.
    if (int status = 0; stopper.has_asked() && ::waitpid(program, &status, WNOHANG) == program) return status;
    for (std::size_t i = 0; i < ends.size() && ready > 0; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      const ssize_t count = retry([&] { return ::read(ends[i].fd, buffer.data(), buffer.size()); });
      if (count <= 0)
        ends[i].fd = -1;
      else
        texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
      if (count > 0 && options.printed) options.printed({buffer.data(), static_cast<std::size_t>(count)});
    }
  }
  return {};
}

// The environment of a program: that of this process with the variables of `added` in place of its own.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& added) {
    texts_.reserve(added.size());
    for (const auto& [name, value] : added) texts_.push_back(name + "=" + value);
    pointers_.reserve(texts_.size());
    for (std::string& text : texts_) pointers_.push_back(text.data());
    for (char** own = environ; *own; ++own)
      if (std::ranges::none_of(added,
                               [&](const auto& each) { return std::string_view(*own).starts_with(each.first + "="); }))
        pointers_.push_back(*own);
    pointers_.push_back(nullptr);
  }
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// Becomes the program; returns errno. Called between fork() and exec(), where little is allowed.
int become(const std::vector<char*>& arguments, const Environment& environment, pid_t parent, const Pipe& out,
           const Pipe& err) {
  // The program ends with this process, however that ends.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  if (::getppid() != parent) return ESRCH;  // it has ended before that
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0 || ::dup2(input, STDIN_FILENO) < 0) return errno;
  if (::dup2(out.write.get(), STDOUT_FILENO) < 0 || ::dup2(err.write.get(), STDERR_FILENO) < 0) return errno;
  ::execvpe(arguments[0], arguments.data(), environment.get());
  return errno;
}

// Starts a program that writes to the pipes.
Result<pid_t> start(const std::vector<char*>& arguments, const Environment& environment, const Pipe& out,
                    const Pipe& err) {
  BOOST_OUTCOME_TRY(Pipe problems, Pipe::open(arguments[0]));
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return io_error(arguments[0], "run the program", errno);
  if (child == 0) {
    const int problem = become(arguments, environment, parent, out, err);
    (void)!::write(problems.write.get(), &problem, sizeof problem);
    ::_exit(127);
  }
  problems.write = Descriptor();
  int problem = 0;
  if (retry([&] { return ::read(problems.read.get(), &problem, sizeof problem); }) <= 0) return child;
  retry([&] { return ::waitpid(child, nullptr, 0); });
  return io_error(arguments[0], "run the program", problem);
}

}  // namespace

std::optional<std::string> find_program(const std::string& word) {
  const auto is_program = [](const std::string& path) { return ::access(path.c_str(), X_OK) == 0 && !is_folder(path); };
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

Result<CommandResult> run_command(const std::vector<std::string>& words, const CommandOptions& options) {
  BOOST_OUTCOME_TRY(Pipe out, Pipe::open(words[0]));
  BOOST_OUTCOME_TRY(Pipe err, Pipe::open(words[0]));
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const Environment environment(options.environment);
  BOOST_OUTCOME_TRY(const pid_t child, start(arguments, environment, out, err));
  out.write = Descriptor();
  err.write = Descriptor();
  CommandResult result;
  Stopper stopper(child, options.stop);
  std::optional<int> ended = read_both(out, err, child, stopper, options, result);
  if (!ended) {
    int status = 0;
    if (retry([&] { return ::waitpid(child, &status, 0); }) != child) return io_error(words[0], "wait for", errno);
    ended = status;
  }
  if (options.stop && *options.stop) return interrupted();
  result.exit_code = WIFSIGNALED(*ended) ? 128 + WTERMSIG(*ended) : WEXITSTATUS(*ended);
  return result;
}

Result<std::string> output_of(const std::vector<std::string>& words) {
  BOOST_OUTCOME_TRY(CommandResult result, run_command(words));
  if (result.exit_code == 0) return std::move(result.out);
  Error error{ExitCode::kIo, "", fmt::format("{} exited with code {}", words[0], result.exit_code), result.err, ""};
  error.help = "the command was: " + shell_words(words);
  return error;
}

Result<std::string> run_and_capture(const std::vector<std::string>& words, const CommandOptions& options) {
  BOOST_OUTCOME_TRY(const CommandResult result, run_command(words, options));
  std::string printed = result.out + result.err;
  if (result.exit_code == 0) return printed;
  const std::string end = printed.size() > 400 ? printed.substr(printed.size() - 400) : printed;
  Error error{ExitCode::kIo, words.front(), fmt::format("failed with exit code {}", result.exit_code), end,
              options.help};
  if (const int signal = result.exit_code - 128; signal > 0)  // shells return such codes, too
    error.what = fmt::format("was ended by signal {}", signal);
  if (result.exit_code == 128 + SIGKILL)
    error.help = "often the memory is used up; run the same command again to resume";
  return error;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace ggufmill
