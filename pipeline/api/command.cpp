#include "pipeline/api/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "pipeline/core/text.h"
#include "pipeline/io/descriptor.h"
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

// Reads both pipes until both are closed.
void read_both(Pipe& out, Pipe& err, CommandResult& result) {
  std::array<pollfd, 2> ends{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&result.out, &result.err};
  std::array<char, 4096> buffer{};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (retry([&] { return ::poll(ends.data(), ends.size(), -1); }) < 0) return;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      const ssize_t count = retry([&] { return ::read(ends[i].fd, buffer.data(), buffer.size()); });
      if (count <= 0)
        ends[i].fd = -1;
      else
        texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
    }
  }
}

}  // namespace

Result<CommandResult> run_command(const std::vector<std::string>& words) {
  BOOST_OUTCOME_TRY(Pipe out, Pipe::open(words[0]));
  BOOST_OUTCOME_TRY(Pipe err, Pipe::open(words[0]));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return io_error(words[0], "run the program", problem);
  out.write = Descriptor();
  err.write = Descriptor();
  CommandResult result;
  read_both(out, err, result);
  int status = 0;
  if (retry([&] { return ::waitpid(child, &status, 0); }) != child) return io_error(words[0], "wait for", errno);
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

Result<std::string> output_of(const std::vector<std::string>& words) {
  BOOST_OUTCOME_TRY(CommandResult result, run_command(words));
  if (result.exit_code == 0) return std::move(result.out);
  Error error{ExitCode::kIo, "", fmt::format("{} exited with code {}", words[0], result.exit_code), result.err, ""};
  error.help = "the command was: " + shell_words(words);
  return error;
}

Result<std::string> run_and_capture(const std::vector<std::string>& words) {
  BOOST_OUTCOME_TRY(const CommandResult result, run_command(words));
  std::string printed = result.out + result.err;
  if (result.exit_code == 0) return printed;
  const std::string end = printed.size() > 400 ? printed.substr(printed.size() - 400) : printed;
  return Error{ExitCode::kIo, words.front(), fmt::format("failed with exit code {}", result.exit_code), end, ""};
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace ggufmill
