#pragma once
// Errors: location, problem, details and remedy. Libraries return errors; only the command line prints them.

#include <boost/outcome/basic_result.hpp>  // first: Boost 1.81's policy headers are not self-contained

#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/lifetime.h"

namespace ggufmill {

// Exit codes of DESIGN 8, on which scripts may rely.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,         // command line or pipeline file
  kVerification = 3,  // outputs do not match
  kBadInput = 4,      // an input file is malformed
  kKernel = 5,        // kernel or ISA not available, or a kernel module with a defect
  kIo = 6,            // no space, permission, read or write failed
  kTransient = 75,    // try again
  kInterrupted = 130,
  kTerminated = 143,
};

// A single problem. Rendered as
//   WHERE: error: WHAT
//     DETAIL (each line indented by two)
//     help: HELP
// Empty parts are omitted.
struct Error {
  ExitCode code = ExitCode::kInternal;
  std::string where;   // "configs/big.yaml:9:56", "models/a.gguf"; may be empty
  std::string what;    // one line, quoting the user's input
  std::string detail;  // further lines: source line and caret, byte offset, limit
  std::string help;    // how to fix it
  // The file that cannot be read, if that is the error; `where` is its path, or the place that names it.
  std::string unread;
  // Further errors found by the same step. Lets several errors pass through one Result; Diagnostics separates them
  // again.
  std::vector<Error> also;

  // Not inline: every Result has an Error, and copies of these in each function that returns one would take a third of
  // the time to compile the program.
  Error();
  Error(ExitCode exit_code, std::string place, std::string problem, std::string details = {}, std::string remedy = {});
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ~Error();
};

std::string render(const Error& error);

// Returns the error with help for a user of options. Use it after an error function whose help names keys.
Error with_options(Error error, std::string_view help);

// `T` or an `Error`. Accessing the wrong alternative terminates the program: check first, or use BOOST_OUTCOME_TRY.
template <class T>
using Result = boost::outcome_v2::basic_result<T, Error, boost::outcome_v2::policy::terminate>;

// Result of an operation without a value: `return ok();`
using Status = Result<void>;
inline auto ok() { return boost::outcome_v2::success(); }

Error usage_error(std::string what, std::string help = {});
Error input_error(std::string where, std::string what, std::string help = {});
// Converts `errno_value` to its message ("No space left on device"); `action` is the operation that failed ("write 4096
// bytes at 512").
Error io_error(std::string path, std::string action, int errno_value);

// The place in a pipeline file at which the user asked for something, for use in messages. Empty if the request comes
// from a program.
struct Origin {
  std::string where;    // "configs/big.yaml:9:56"
  std::string excerpt;  // the line, with a caret under the place
};
// Returns an error about the request at `origin`, with exit code 2.
Error error_at(const Origin& origin, std::string what, std::string help = {});
// Moves the error of a file that cannot be read to the place at which the user named the file, with `help` if it has
// none. Returns other errors, and all if `origin` is empty, as they are.
Error named_at(const Origin& origin, Error error, std::string help);

// All errors of a check, in the order in which they were found. Not thread-safe.
class Diagnostics {
 public:
  // Ignores an error with the same place and text as an earlier one, or about the same unread file: a file that several
  // outputs name, however they spell its path, is read for each of them. Errors without a place are all kept.
  void add(Error error);
  bool empty() const { return errors_.empty(); }
  const std::vector<Error>& errors() const GGUFMILL_OUTLIVES_RESULT { return errors_; }
  // Returns the first error, with the others in its `also`. Requires at least one error.
  Error together() const;

 private:
  std::vector<Error> errors_;
  std::set<std::pair<std::string, std::string>> seen_;  // place and text of each error that has a place
};

}  // namespace ggufmill
