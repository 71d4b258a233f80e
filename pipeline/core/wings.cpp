#include "pipeline/core/wings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/paths.h"

namespace ggufmill {
namespace {

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

bool is_in_range(std::string_view pattern, std::string_view word) {
  const std::size_t dots = pattern.find("..");
  if (dots == pattern.npos) return false;
  const auto first = number_in(pattern.substr(0, dots)), last = number_in(pattern.substr(dots + 2));
  const auto number = number_in(word);
  return first && last && number && *first <= *number && *number <= *last;
}

}  // namespace

bool wing_has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view pattern = words.substr(0, end);
    if (matches_wildcards(lower_case(pattern), lower_case(word)) || is_in_range(pattern, word)) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::string omitted_wing_help(std::string_view word) {
  for (const OmittedWing& wing : omitted_wings())
    if (wing_has_word(wing.words, word))
      return fmt::format(
          "this build omits {}: install a complete build, or add `{}` to -DGGUFMILL_WITH when you configure this one",
          wing.what, wing.name);
  return {};
}

}  // namespace ggufmill
