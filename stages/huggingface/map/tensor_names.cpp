#include "stages/huggingface/map/tensor_names.h"

#include <fmt/format.h>

#include <charconv>

namespace ggufmill::huggingface {
namespace {

constexpr std::size_t kMaxDigits = 6;

std::size_t digits_of(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count > kMaxDigits || (count > 1 && text[0] == '0') ? 0 : count;
}

}  // namespace

Result<NameTemplate> NameTemplate::parse(std::string_view text) {
  NameTemplate result;
  result.text_ = text;
  std::string_view rest = text;
  for (;;) {
    const std::size_t open = rest.find('{');
    if (open == std::string_view::npos) break;
    const std::size_t close = rest.find('}', open);
    const std::string_view word = close == std::string_view::npos ? "" : rest.substr(open + 1, close - open - 1);
    bool& seen = word == "expert" ? result.has_expert_ : result.has_layer_;
    if ((word != "layer" && word != "expert") || seen)
      return usage_error(fmt::format("'{}' is not a valid tensor name", text),
                         "it may contain {layer} and {expert}, each at most once");
    seen = true;
    result.pieces_.push_back({std::string(rest.substr(0, open)), word[0]});
    rest.remove_prefix(close + 1);
  }
  result.pieces_.push_back({std::string(rest), 0});
  return result;
}

std::optional<std::string> NameTemplate::with(const NameNumbers& numbers) const {
  std::string name;
  for (const Piece& piece : pieces_) {
    name += piece.literal;
    if (piece.number == 0) continue;
    const std::optional<std::uint32_t> number = piece.number == 'l' ? numbers.layer : numbers.expert;
    if (!number) return {};
    name += std::to_string(*number);
  }
  return name;
}

std::optional<NameNumbers> NameTemplate::match(std::string_view name) const {
  NameNumbers numbers;
  for (const Piece& piece : pieces_) {
    if (!name.starts_with(piece.literal)) return {};
    name.remove_prefix(piece.literal.size());
    if (piece.number == 0) continue;
    const std::size_t digits = digits_of(name);
    if (digits == 0) return {};
    std::uint32_t value = 0;
    std::from_chars(name.data(), name.data() + digits, value);
    (piece.number == 'l' ? numbers.layer : numbers.expert) = value;
    name.remove_prefix(digits);
  }
  if (!name.empty()) return {};
  return numbers;
}

// Endings of the tensors of a linear layer, whose inputs and outputs may be limited.
constexpr std::string_view kEndings[] = {".weight", ".bias", ".input_max", ".input_min", ".output_max", ".output_min"};

Result<NamePattern> NamePattern::parse(std::string_view text) {
  NamePattern result;
  BOOST_OUTCOME_TRY(result.name_, NameTemplate::parse(text));
  result.open_ = !text.ends_with(".weight") && !text.ends_with(".bias");
  return result;
}

std::optional<NamePattern::Match> NamePattern::match(std::string_view name) const {
  if (const auto numbers = name_.match(name)) return Match{*numbers, ""};
  if (open_)
    for (const std::string_view suffix : kEndings)
      if (name.ends_with(suffix))
        if (const auto numbers = name_.match(name.substr(0, name.size() - suffix.size())))
          return Match{*numbers, std::string(suffix)};
  return {};
}

}  // namespace ggufmill::huggingface
