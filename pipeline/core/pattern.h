#pragma once
// Regular expressions over names of tensors and files: Boost.Regex, Perl syntax.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// A compiled pattern. Immutable, cheap to copy, thread-safe.
class Pattern {
 public:
  // Compiles a pattern of at most 4096 bytes. The error states the problem and the character of the pattern at which it
  // occurs; if `fault_at` is given, it receives the number of bytes before that character.
  static Result<Pattern> compile(std::string_view text, std::size_t* fault_at = nullptr);

  // Returns true if the pattern matches anywhere in `name`. Fails if the search would take too long: Boost.Regex counts
  // its steps and gives up on runaway patterns.
  Result<bool> matches(std::string_view name) const;
  // The texts of the groups in their order; nullopt for a group that is not part of the match.
  using Groups = std::vector<std::optional<std::string>>;
  // Returns the groups if the pattern matches all of `name`, and nullopt otherwise. Errors are those of matches().
  Result<std::optional<Groups>> match_whole(std::string_view name) const;
  // Returns `name` with the first match replaced by `format` (Boost's Perl format strings): $1 to $9 are the matches of
  // the groups, $& is the entire match, and \\ and \$ are a literal backslash and dollar sign. Returns nullopt if there
  // is not a match. Errors are those of matches(), and a result of more than 65535 bytes that is longer than `name`.
  Result<std::optional<std::string>> replace(std::string_view name, const std::string& format) const;
  // Number of capturing groups in the pattern.
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
