#pragma once
// Regular expressions of tokenizers. They are written in Oniguruma's Ruby syntax, rewritten where PCRE2 differs, and
// executed by PCRE2.

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

namespace ggufmill::huggingface {

using TextRange = std::pair<std::size_t, std::size_t>;  // bytes: begin, end

// Total number of steps that the expressions of one tokenizer may take, which bounds the run time. Thread-safe.
struct MatchBudget {
  std::atomic<std::int64_t> steps{200'000'000};  // a tokenizer in use takes some 100,000
};

// Returns the pattern in PCRE2's syntax: \h, \uHHHH, \w and {n,m}+ keep their Oniguruma meaning, and && in a class
// becomes an assertion before the class. Pure; constructs that it does not know are left unchanged.
std::string pcre2_pattern(std::string_view ruby);

// A compiled pattern. Copies share it. Thread-safe.
class Regex {
 public:
  // Compiles a pattern. `where` is the file, for messages. Errors: an invalid regular expression, or a pattern longer
  // than any tokenizer's.
  static Result<Regex> compile(const std::string& where, std::string_view pattern, std::shared_ptr<MatchBudget> budget);
  // Finds the non-overlapping matches in UTF-8 text, from left to right. An empty match directly after another match
  // is ignored. Fails if a match takes more steps than any reasonable pattern needs, or if the budget is used up.
  Result<std::vector<TextRange>> find_all(std::string_view text) const;

 private:
  Regex(std::string where, std::string pattern, std::shared_ptr<const pcre2_real_code_8> code,
        std::shared_ptr<MatchBudget> budget);
  // Matches once, starting at byte `at`; returns PCRE2's result code.
  int match(std::string_view text, std::size_t at, pcre2_real_match_data_8* data,
            pcre2_real_match_context_8* context) const;
  std::string where_;
  std::string pattern_;
  std::shared_ptr<const pcre2_real_code_8> code_;
  std::shared_ptr<MatchBudget> budget_;
};

}  // namespace ggufmill::huggingface
