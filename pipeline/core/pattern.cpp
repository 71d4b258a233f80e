#include "pipeline/core/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/regex.hpp>
#include <cctype>
#include <exception>
#include <new>
#include <stdexcept>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxPatternLength = 4096;  // ample for tensor names, and keeps compilation cheap
constexpr std::size_t kMaxReplaced = 65535;      // bytes; the longest name of a tensor that can be read
constexpr std::size_t kMaxFormatted = 16 << 20;  // bytes that a replacement may insert

// Upper bound of the bytes that `format` inserts: each group is a part of `name`.
std::size_t inserted_bytes(std::string_view name, std::string_view format) {
  const auto groups = std::ranges::count_if(format, [](char c) { return c == '$' || c == '\\'; });
  return format.size() + static_cast<std::size_t>(groups) * name.size();
}

// Returns Boost's message without the copy of the pattern that Boost appends.
std::string reason_of(const boost::regex_error& error) {
  std::string reason = error.what();
  reason.resize(std::min(reason.find("  The error occurred"), reason.size()));
  while (!reason.empty() && (reason.back() == '.' || reason.back() == ' ')) reason.pop_back();
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return reason;
}

}  // namespace

struct Pattern::Compiled {
  boost::regex expression;
};

// The problem with a pattern and its byte offset; an empty reason means no problem.
struct Pattern::Fault {
  std::string reason;
  std::size_t offset = 0;
};

Pattern::Fault Pattern::try_compile(std::string_view text, Pattern& out) {
  if (text.empty()) return {"it is empty"};
  if (text.size() > kMaxPatternLength) return {fmt::format("longer than {} bytes", kMaxPatternLength)};
  try {
    out.compiled_ = std::make_shared<Compiled>(Compiled{boost::regex(text.begin(), text.end())});
    out.text_ = text;
    return {};
  } catch (const boost::regex_error& error) {
    return {reason_of(error),
            std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, error.position())), text.size())};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // internal limits of Boost
    return {error.what()};
  }
}

Result<Pattern> Pattern::compile(std::string_view text, std::size_t* fault_at) {
  Pattern pattern;
  const Fault fault = try_compile(text, pattern);
  if (fault.reason.empty()) return pattern;
  Error error = usage_error(fmt::format("bad regular expression {}: {}", quoted_name(text), fault.reason));
  error.detail = fmt::format("at character {}", fault.offset + 1);
  error.help = text.empty() ? "'.' matches every name" : R"(escape special characters with a backslash: 'a\.b\(')";
  if (fault_at) *fault_at = fault.offset;
  return error;
}

Error Pattern::too_slow(std::string_view name) const {
  return usage_error(fmt::format("regular expression {} takes too long on {}", quoted_name(text_), quoted_name(name)),
                     "write it without nested repeats such as (a*)*");
}

Result<bool> Pattern::matches(std::string_view name) const {
  try {
    return boost::regex_search(name.begin(), name.end(), compiled_->expression);
  } catch (const std::runtime_error&) {  // too many steps
    return too_slow(name);
  }
}

Result<std::optional<Pattern::Groups>> Pattern::match_whole(std::string_view name) const {
  try {
    boost::match_results<std::string_view::const_iterator> match;
    if (!boost::regex_match(name.begin(), name.end(), match, compiled_->expression)) return std::nullopt;
    Groups groups;
    for (std::size_t i = 1; i < match.size(); ++i)
      groups.push_back(match[i].matched ? std::optional(match[i].str()) : std::nullopt);
    return groups;
  } catch (const std::runtime_error&) {
    return too_slow(name);
  }
}

Result<std::optional<std::string>> Pattern::replace(std::string_view name, const std::string& format) const {
  try {
    boost::match_results<std::string_view::const_iterator> match;
    if (!boost::regex_search(name.begin(), name.end(), match, compiled_->expression)) return std::nullopt;
    if (inserted_bytes(name, format) <= kMaxFormatted) {
      std::string replaced = std::string(match.prefix().first, match.prefix().second) + match.format(format) +
                             std::string(match.suffix().first, match.suffix().second);
      if (replaced.size() <= std::max(kMaxReplaced, name.size())) return replaced;
    }
    return usage_error(fmt::format("replacing {} in {} makes it longer than {} bytes", quoted_name(text_),
                                   quoted_name(name), kMaxReplaced),
                       "shorten the replacement, or repeat fewer groups in it");
  } catch (const std::runtime_error&) {
    return too_slow(name);
  }
}

std::size_t Pattern::groups() const { return compiled_->expression.mark_count(); }

}  // namespace ggufmill
