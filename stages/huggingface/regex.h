#pragma once
// Regular expressions of tokenizers. They are written for Oniguruma's Ruby syntax; PCRE2 runs them, after what differs
// has been rewritten.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"

struct pcre2_real_code_8;

namespace ggufmill {

using TextRange = std::pair<std::size_t, std::size_t>;  // bytes: begin, end

// The pattern as PCRE2 wants it: \h, \uHHHH, \w and {n,m}+ mean what they mean to Oniguruma, and && in a class is
// an assertion before it. Pure; what it does not know it leaves as it is.
std::string pcre2_pattern(std::string_view ruby);

// Copies share the compiled pattern. Thread-safe.
class Regex {
 public:
  // `where` is the file for messages. Errors: not a regular expression, or larger than any tokenizer's.
  static Result<Regex> compile(const std::string& where, std::string_view pattern);
  // Matches that do not overlap, from the left. An empty match directly after another match does not count. Fails where
  // a match takes more steps than any sound pattern needs, so that no pattern runs for ever.
  Result<std::vector<TextRange>> find_all(std::string_view utf8) const;

 private:
  Regex(std::string where, std::string pattern, std::shared_ptr<const pcre2_real_code_8> code);
  std::string where_;
  std::string pattern_;
  std::shared_ptr<const pcre2_real_code_8> code_;
};

}  // namespace ggufmill
