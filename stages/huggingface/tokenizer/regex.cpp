#include "stages/huggingface/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <optional>

#include "pipeline/core/text.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::size_t kMaxPattern = 16384;  // bytes; the longest in use have some 500
// Step limits for a match, tried in ascending order. The budget is charged the limit, because PCRE2 reports only
// whether it was reached.
constexpr std::uint32_t kMatchSteps[] = {64, 1024, 16384, 262144};
constexpr std::uint32_t kMatchKibibytes = 16384;  // memory for one match

constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";  // \w, for use in a class

// Rewrites a pattern in one pass. `atom_` is where the last atom began in the output, for a quantifier that follows.
class Rewriter {
 public:
  explicit Rewriter(std::string_view in) : in_(in) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = in_[at_];
    if (c == '\\') {
      atom_ = out_.size();
      escape(false);
    } else if (c == '[') {
      atom_ = out_.size();
      out_ += character_class();
    } else if (c == '(') {
      groups_.push_back(out_.size());
      copy(1);
    } else if (c == ')') {
      if (!groups_.empty()) {
        atom_ = groups_.back();
        groups_.pop_back();
      }
      copy(1);
    } else if (c == '{') {
      interval();
    } else if (c == '*' || c == '+' || c == '?') {
      copy(1);
    } else {
      atom_ = out_.size();
      copy(utf8_sequence(in_.substr(at_)));
    }
  }

  void copy(std::size_t bytes) {
    bytes = std::max<std::size_t>(bytes, 1);
    out_ += in_.substr(at_, bytes);
    at_ += bytes;
  }

  // Appends the translation of the escape at at_ to out_.
  void escape(bool in_class) {
    const char c = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    const auto put = [&](std::string_view text) {
      out_ += text;
      at_ += 2;
    };
    const auto put_class = [&](std::string_view items, bool negated) {
      put(fmt::format("[{}{}]", negated ? "^" : "", items));
    };
    if (c == 'w' || (c == 'W' && !in_class)) return in_class ? put(kWord) : put_class(kWord, c == 'W');
    if (c == 'h' || (c == 'H' && !in_class)) return in_class ? put("0-9a-fA-F") : put_class("0-9a-fA-F", c == 'H');
    if (c == 'u' && at_ + 6 <= in_.size()) {
      out_ += fmt::format("\\x{{{}}}", in_.substr(at_ + 2, 4));
      at_ += 6;
      return;
    }
    if (c == 'p' || c == 'P' || c == 'x') {
      const std::size_t close = in_.find('}', at_);
      if (at_ + 2 < in_.size() && in_[at_ + 2] == '{' && close != in_.npos) return copy(close + 1 - at_);
    }
    copy(2);
  }

  // In Ruby's syntax, {n,m}+ is not a possessive quantifier but a repetition of a repetition.
  void interval() {
    const std::size_t close = in_.find('}', at_);
    const std::string_view inside = close == in_.npos ? "" : in_.substr(at_ + 1, close - at_ - 1);
    if (inside.empty() || inside.find_first_not_of("0123456789,") != inside.npos) {
      atom_ = out_.size();
      return copy(1);
    }
    copy(close + 1 - at_);
    if (at_ < in_.size() && in_[at_] == '+' && atom_) {
      out_.insert(*atom_, "(?:");
      out_ += ")";
    }
  }

  // Translates the class at at_. `A&&B` becomes an assertion that the character is in B, before A. A nested class is
  // flattened unless it is negated.
  std::string character_class() {
    std::string outside = std::move(out_);
    out_.clear();
    ++at_;
    std::string head = "[";
    if (at_ < in_.size() && in_[at_] == '^') {
      head += '^';
      ++at_;
    }
    if (at_ < in_.size() && in_[at_] == ']') copy(1);
    std::vector<std::string> parts(1);  // separated by &&
    std::string asserted;
    while (at_ < in_.size() && in_[at_] != ']') {
      out_.clear();
      if (in_.substr(at_, 2) == "&&") {
        at_ += 2;
        parts.emplace_back();
        continue;
      }
      if (in_[at_] == '\\') {
        escape(true);
      } else if (in_.substr(at_, 2) == "[:") {
        const std::size_t close = in_.find(":]", at_);
        copy(close == in_.npos ? 1 : close + 2 - at_);
      } else if (in_[at_] == '[') {
        const std::string nested = character_class();
        if (parts.size() > 1 && parts.back().empty())
          asserted += "(?=" + nested + ")";
        else if (nested.starts_with("[") && !nested.starts_with("[^"))
          out_ = nested.substr(1, nested.size() - 2);
        else
          out_ = "\\[";  // a union with a negated class: none in use; PCRE2 then reports an error or accepts the rest
      } else {
        copy(utf8_sequence(in_.substr(at_)));
      }
      parts.back() += out_;
    }
    if (at_ < in_.size()) ++at_;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (!parts[i].empty()) asserted += "(?=[" + parts[i] + "])";
    }
    out_ = std::move(outside);
    const std::string own = head + parts[0] + "]";
    return asserted.empty() ? own : "(?:" + asserted + own + ")";
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  std::optional<std::size_t> atom_;
  std::vector<std::size_t> groups_;
};

template <class T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* object) const { kFree(object); }
};
template <class T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Freer<T, kFree>>;

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

std::string pcre2_pattern(std::string_view ruby) { return Rewriter(ruby).run(); }

Regex::Regex(std::string where, std::string pattern, std::shared_ptr<const pcre2_real_code_8> code,
             std::shared_ptr<MatchBudget> budget)
    : where_(std::move(where)), pattern_(std::move(pattern)), code_(std::move(code)), budget_(std::move(budget)) {}

Result<Regex> Regex::compile(const std::string& where, std::string_view pattern, std::shared_ptr<MatchBudget> budget) {
  if (pattern.size() > kMaxPattern) {
    return input_error(where,
                       fmt::format("a regular expression of {} bytes; the limit is {}", pattern.size(), kMaxPattern));
  }
  const std::string rewritten = pcre2_pattern(pattern);
  const Owned<pcre2_compile_context, pcre2_compile_context_free> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, context.get());
  if (!compiled) {
    return input_error(
        where, fmt::format("{} is not a valid regular expression: {}", quoted_name(pattern), pcre2_message(code)));
  }
  std::shared_ptr<const pcre2_code> code_owner(
      compiled, [](const pcre2_code* owned) { pcre2_code_free(const_cast<pcre2_code*>(owned)); });
  return Regex(where, std::string(pattern), std::move(code_owner), std::move(budget));
}

int Regex::match(std::string_view text, std::size_t at, pcre2_match_data* data, pcre2_match_context* context) const {
  int code = PCRE2_ERROR_MATCHLIMIT;
  for (const std::uint32_t steps : kMatchSteps) {
    // A step may scan all of a long text.
    const std::int64_t cost = std::int64_t{steps} * static_cast<std::int64_t>(1 + text.size() / 1024);
    if (budget_->steps.fetch_sub(cost) < cost) return PCRE2_ERROR_MATCHLIMIT;
    pcre2_set_match_limit(context, steps);
    code = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                       at == 0 ? 0 : PCRE2_NO_UTF_CHECK, data, context);
    if (code != PCRE2_ERROR_MATCHLIMIT) return code;
  }
  return code;
}

Result<std::vector<TextRange>> Regex::find_all(std::string_view text) const {
  const Owned<pcre2_match_context, pcre2_match_context_free> context(pcre2_match_context_create(nullptr));
  pcre2_set_heap_limit(context.get(), kMatchKibibytes);
  const Owned<pcre2_match_data, pcre2_match_data_free> data(pcre2_match_data_create(1, nullptr));
  std::vector<TextRange> found;
  std::size_t at = 0;
  while (at <= text.size()) {
    const int code = match(text, at, data.get(), context.get());
    if (code == PCRE2_ERROR_NOMATCH) break;
    if (code < 0) {
      return input_error(where_, fmt::format("the regular expression {} does not finish: {}", quoted_name(pattern_),
                                             pcre2_message(code)));
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    if (range[0] > range[1]) return input_error(where_, fmt::format("{} matches backwards", quoted_name(pattern_)));
    if (range[0] == range[1] && !found.empty() && found.back().second == range[1]) {
      at = range[1] + std::max<std::size_t>(1, utf8_sequence(text.substr(range[1])));
      continue;
    }
    found.emplace_back(range[0], range[1]);
    at = range[1];
  }
  return found;
}

}  // namespace ggufmill::huggingface
