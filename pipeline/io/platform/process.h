#pragma once
// This process, and the programs that it starts. Texts are UTF-8.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ggufmill {

// ---- the program ----

// Called first in main(): a failed write to a closed pipe or beyond a limit is an error, not the end of the program;
// output is UTF-8 and nothing in it is replaced; freed memory is returned to the system.
void prepare_program();
// Returns the arguments of main() without the name of the program.
std::vector<std::string> program_arguments(int argc, char** argv);
// For a program that is started with a C library and other libraries of its own (cli/program.cpp): shields it from
// settings that are for those of the system.
void use_own_libraries(const char* program_name);
// Calls `handler` with SIGINT or SIGTERM when the user or the system asks the program to end, on any thread. Only the
// first time; the second time ends the program, unless it comes within half a second: `timeout` and batch systems send
// a request to the program and again to its group.
void on_interrupt(void (*handler)(int number));
// Returns true if standard output is a pipe whose reader has closed it, as in `ggufmill plan x | head`.
bool is_output_unread();
// Ends the program like one that writes to such a pipe: silently, with exit code 141 in a shell. Returns that exit code
// if the system has no such end.
int end_unread();

// Value of a variable of the environment.
std::optional<std::string> environment_variable(const char* name);

// ---- the process ----

std::uint64_t process_id();
// Returns false if no process has the number.
bool is_process(std::uint64_t id);
// Raises the limit on open files to `files` if it is lower, as far as the user may.
void allow_open_files(std::uint64_t files);
// Makes the calling thread, and the threads that it starts, yield to other programs by `steps` from 1 to 19, as nice
// does. Returns false if the system refuses.
bool lower_priority(unsigned steps);

// Blocks all signals for the current thread while it exists, and permanently for threads started during that time:
// signals sent to the process are delivered to the program's own threads.
class BlockedSignals {
 public:
  BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals();

 private:
  alignas(16) std::byte before_[128];  // the system's set of signals
};

// ---- other programs ----

// Returns the path of the program that ChildProgram::start() would start for `word`; none if there is no such program.
std::optional<std::string> find_program(const std::string& word);

using Variables = std::vector<std::pair<std::string, std::string>>;

// Returns the environment of this process.
Variables own_variables();

// A program that this one has started, with empty standard input. One thread at a time may use it.
class ChildProgram {
 public:
  enum class Stream { kOut, kErr };
  using Printed = std::function<void(Stream stream, std::string_view text)>;

  // Starts `words[0]`, searched for in PATH, with the remaining words as arguments. `environment` is all of that of the
  // program (child_environment.h). On Linux and Windows, the program is killed when this process ends. Returns null on
  // failure, with an errno in `error` and in `action` what failed.
  static std::unique_ptr<ChildProgram> start(const std::vector<std::string>& words, const Variables& environment,
                                             int& error, const char*& action);
  virtual ~ChildProgram() = default;

  // Waits until the program prints something or closes its output, or for `milliseconds` (-1: without limit), and
  // passes on what it has printed. Returns false once nothing more can come.
  virtual bool read(int milliseconds, const Printed& printed) = 0;
  // Asks the program to end; kill() does not ask.
  virtual void ask_to_end() = 0;
  virtual void kill() = 0;
  // Returns the exit code, 128 + N after signal N, if the program has ended.
  virtual std::optional<int> ended() = 0;
  // Waits for the end and returns the exit code; -1 and errno on failure.
  virtual int wait() = 0;
};

// ChildAnswer::fault of a process that used up its time.
inline constexpr const char* kOutOfTime = "does not finish";

// Result of work in another process.
struct ChildAnswer {
  std::string text;   // what the work returned
  std::string fault;  // how the process ended without a result: "is killed by signal 11 (...)"; else empty
};

// The time that the process may use.
struct ChildLimits {
  unsigned cpu_seconds = 2;
  std::chrono::seconds patience{30};  // in total
};

// Runs work that may crash the process in a forked copy of it, with its output discarded, and waits for the result.
// Failure of the system to create a process is reported as a fault as well. Locks that other threads hold at the time
// of the fork stay locked in the copy forever: `work` must not need any of them. A system without fork runs the program
// `helper` instead, which prints what `work` would return; without a helper, it runs `work` on a thread, which it ends
// at an exception of the processor or when its time is up, and which then leaves behind what it has allocated. Throws
// std::bad_alloc if the copy runs out of memory.
ChildAnswer ask_child(const std::function<std::string()>& work, const ChildLimits& limits = {},
                      const std::vector<std::string>& helper = {});

}  // namespace ggufmill
