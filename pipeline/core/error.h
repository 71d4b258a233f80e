#pragma once
// Errors: where, what, why, and what to do now. Libraries return them; only the command line prints them.

#include <boost/outcome/result.hpp>  // first: Boost 1.81's policies do not stand alone

#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>
#include <string>
#include <vector>

namespace ggufmill {

// The exit codes of DESIGN 8: what a script may rely on.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,         // command line or pipeline file
  kVerification = 3,  // outputs do not match
  kBadInput = 4,      // an input file is malformed
  kKernel = 5,        // kernel or ISA not available
  kIo = 6,            // no space, permission, read or write failed
  kTransient = 75,    // try again
  kInterrupted = 130,
  kTerminated = 143,
};

// One thing that is wrong. Rendered as
//   WHERE: error: WHAT
//     DETAIL (each line indented by two)
//     help: HELP
// with the empty parts left out.
struct Error {
  ExitCode code = ExitCode::kInternal;
  std::string where;   // "configs/big.yaml:9:56", "models/a.gguf"; may be empty
  std::string what;    // one line, quoting the user's words
  std::string detail;  // further lines: source line and caret, byte offset, limit
  std::string help;    // what to do now
  // Further errors that the same step found: how several pass through one Result. Diagnostics takes them apart.
  std::vector<Error> also{};
};

std::string render(const Error& error);

// `T` or an `Error`. Reading the wrong one ends the program: check first, or use BOOST_OUTCOME_TRY.
template <class T>
using Result = boost::outcome_v2::result<T, Error, boost::outcome_v2::policy::terminate>;

// An operation without a value: `return ok();`
using Status = Result<void>;
inline auto ok() { return boost::outcome_v2::success(); }

Error usage_error(std::string what, std::string help = {});
Error input_error(std::string where, std::string what, std::string help = {});
// `errno_value` becomes words ("No space left on device"); `action` says what was tried ("write 4096 bytes at 512").
Error io_error(std::string path, std::string action, int errno_value);

// Where the user asked for something, for messages about it: a place in a pipeline file. Empty where a program asks.
struct Origin {
  std::string where;    // "configs/big.yaml:9:56"
  std::string excerpt;  // the line, and a caret under the place
};
// What is wrong with what was asked for there. Exit code 2.
Error error_at(const Origin& origin, std::string what, std::string help = {});

// Every error of a check, in the order found. Not thread-safe.
class Diagnostics {
 public:
  void add(Error error);
  bool empty() const { return errors_.empty(); }
  const std::vector<Error>& errors() const { return errors_; }
  // The first, the others in its `also`. There must be one.
  Error together() const;

 private:
  std::vector<Error> errors_;
};

}  // namespace ggufmill
