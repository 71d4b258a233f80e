#pragma once
// Regular expressions of tokenizers. They are written for Oniguruma's Ruby syntax; PCRE2 runs them, after what differs
// has been rewritten.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace ggufmill {

using TextRange = std::pair<std::size_t, std::size_t>;  // bytes: begin, end

// Steps that the expressions of one tokenizer may take together, so that the time they take has an end. Thread-safe.
struct MatchBudget {
  std::atomic<std::int64_t> steps{200'000'000};  // a tokenizer in use takes some 100,000
};

// The pattern as PCRE2 wants it: \h, \uHHHH, \w and {n,m}+ mean what they mean to Oniguruma, and && in a class is
// an assertion before it. Pure; what it does not know it leaves as it is.
std::string pcre2_pattern(std::string_view ruby);

// Copies share the compiled pattern. Thread-safe.
class Regex {
 public:
  // `where` is the file for messages. Errors: not a regular expression, or larger than any tokenizer's.
  static Result<Regex> compile(const std::string& where, std::string_view pattern, std::shared_ptr<MatchBudget> budget);
  // Matches in UTF-8 text that do not overlap, from the left. An empty match directly after another match does not
  // count. Fails where a match takes more steps than any sound pattern needs, or the budget is spent.
  Result<std::vector<TextRange>> find_all(std::string_view text) const;

 private:
  Regex(std::string where, std::string pattern, std::shared_ptr<const pcre2_real_code_8> code,
        std::shared_ptr<MatchBudget> budget);
  // PCRE2's result of one match from byte `at` on.
  int match(std::string_view text, std::size_t at, pcre2_real_match_data_8* data,
            pcre2_real_match_context_8* context) const;
  std::string where_;
  std::string pattern_;
  std::shared_ptr<const pcre2_real_code_8> code_;
  std::shared_ptr<MatchBudget> budget_;
};

}  // namespace ggufmill
