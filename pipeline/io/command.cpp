#include "pipeline/io/command.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/child_environment.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {
namespace {

constexpr int kKillSignal = 9;  // SIGKILL

// Asks a program to end when `*stop` is set or its time is over, and ends it if it does not.
class Stopper {
 public:
  Stopper(ChildProgram& program, const CommandOptions& options) : program_(program), options_(options) {}

  // Milliseconds to wait before the next look(); -1: look() does nothing, so wait without limit.
  int pause() const { return options_.stop || options_.time_limit ? 50 : -1; }
  void look() {
    const auto now = Clock::now();
    is_late_ = options_.time_limit && now - start_ > *options_.time_limit;
    if (!is_late_ && !(options_.stop && *options_.stop)) return;
    if (!asked_at_) {
      asked_at_ = now;
      program_.ask_to_end();
    } else if (now - *asked_at_ > std::chrono::seconds(5)) {
      program_.kill();
    }
  }
  bool has_asked() const { return asked_at_.has_value(); }
  bool is_late() const { return is_late_; }

 private:
  using Clock = std::chrono::steady_clock;
  ChildProgram& program_;
  const CommandOptions& options_;
  const Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> asked_at_;
  bool is_late_ = false;  // the time limit was over at the last look()
};

// Keeps both ends of a text of any length.
class KeptOutput {
 public:
  void add(std::string_view text) {
    const std::string_view first = text.substr(0, kKeptOutput - head_.size());
    head_ += first;
    tail_ += text.substr(first.size());
    if (tail_.size() > 2 * kKeptOutput) cut();  // seldom: each cut moves what is kept
  }
  std::string take() {
    cut();
    if (missing_ != 0) head_ += fmt::format("\n[{} bytes are not shown]\n", missing_);
    return std::move(head_) + tail_;
  }

 private:
  void cut() {
    if (tail_.size() <= kKeptOutput) return;
    missing_ += tail_.size() - kKeptOutput;
    tail_.erase(0, tail_.size() - kKeptOutput);
  }

  std::string head_, tail_;
  std::uint64_t missing_ = 0;
};

// Reads what the program prints until nothing more can come. Programs that it started may hold its output open, so one
// that was asked to end is only read from until it has ended.
void read_output(ChildProgram& program, Stopper& stopper, const CommandOptions& options, CommandResult& result) {
  KeptOutput out, err;
  const auto printed = [&](ChildProgram::Stream stream, std::string_view text) {
    (stream == ChildProgram::Stream::kOut ? out : err).add(text);
    if (options.printed) options.printed(text);
  };
  while (program.read(stopper.pause(), printed)) {
    stopper.look();
    if (stopper.has_asked() && program.ended()) break;
  }
  result.out = out.take();
  result.err = err.take();
}

}  // namespace

Result<CommandResult> run_command(const std::vector<std::string>& words, const CommandOptions& options) {
  int problem = 0;
  const char* action = "";
  const auto program =
      ChildProgram::start(words, child_environment(options.environment, options.secrets), problem, action);
  if (!program) return io_error(words[0], action, problem);
  CommandResult result;
  Stopper stopper(*program, options);
  read_output(*program, stopper, options, result);
  result.exit_code = program->wait();
  if (result.exit_code < 0) return io_error(words[0], "wait for", errno);
  if (options.stop && *options.stop) return interrupted();
  if (stopper.is_late())
    return Error{ExitCode::kTransient, words[0],
                 fmt::format("did not end within {} s", std::chrono::duration<double>(*options.time_limit).count()), "",
                 options.help};
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
  if (result.exit_code == 128 + kKillSignal)
    error.help = "often the memory is used up; run the same command again to resume";
  return error;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace ggufmill
