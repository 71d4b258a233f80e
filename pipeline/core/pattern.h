#pragma once
// Regular expressions over tensor names: Boost.Regex, Perl syntax.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"

namespace ggufmill {

// A compiled pattern. Immutable, cheap to copy, thread-safe.
class Pattern {
 public:
  // At most 4096 bytes. The error says what is wrong and at which character of the pattern; `fault_at`, where given,
  // then gets the number of bytes before that character.
  static Result<Pattern> compile(std::string_view text, std::size_t* fault_at = nullptr);

  // Whether the pattern is found anywhere in `name`. An error when the search would take too long: Boost.Regex counts
  // its steps and gives up on runaway patterns.
  Result<bool> matches(std::string_view name) const;
  // `name` with the first match replaced by `format`, in which $1 to $9 are what the groups matched, $& is the whole
  // match, and \\ and \$ stand for themselves (Boost's Perl format strings); nothing when there is no match. Errors as
  // of matches().
  Result<std::optional<std::string>> replace(std::string_view name, const std::string& format) const;
  // Capturing groups in the pattern.
  std::size_t groups() const;
  const std::string& text() const { return text_; }

 private:
  struct Compiled;
  struct Fault;
  static Fault try_compile(std::string_view text, Pattern& out);
  Error too_slow(std::string_view name) const;

  std::string text_;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace ggufmill
