#include "pipeline/core/expected_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pipeline/core/table_rows.h"
#include "pipeline/core/text.h"

namespace ggufmill {

std::vector<std::string_view> sizes_of(std::string_view shape) {
  if (shape.starts_with("~ ")) shape.remove_prefix(2);
  std::vector<std::string_view> terms;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= shape.size(); ++i) {
    if (i < shape.size()) depth += (shape[i] == '(') - (shape[i] == ')');
    if (i < shape.size() && (shape[i] != ',' || depth > 0)) continue;
    terms.push_back(trimmed(shape.substr(start, i - start)));
    start = i + 1;
  }
  return terms;
}

ExpectedTensors expected_tensors(std::string_view architecture) {
  ExpectedTensors expected;
  for (const auto& row : table_rows(complete_model_table())) {
    if (row.at(0) != architecture && row.at(0) != "*") continue;
    constexpr std::string_view kNumber = " =";
    std::string_view name = row.at(1);
    if (!name.ends_with(kNumber)) {
      expected.lines.push_back({name, row.at(2), row.at(3), row.at(4), row.at(5)});
      continue;
    }
    name.remove_suffix(kNumber.size());
    expected.numbers[name] = row.at(2);  // those of `*` come first
  }
  return expected;
}

namespace {

// Calls `take` with each word of an expression: a name, or a key with dots.
template <class Take>
void for_each_word(std::string_view expression, const Take& take) {
  const auto is_part = [](char c) { return c == '_' || c == '.' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto is_range = [&](std::size_t at) { return expression.substr(at).starts_with(".."); };  // 0..n_layer
  for (std::size_t at = 0; at < expression.size();) {
    at += is_range(at) ? 2 : 0;
    std::size_t end = at;
    while (end < expression.size() && is_part(expression[end]) && !is_range(end)) ++end;
    if (end > at) take(expression.substr(at, end - at));
    at = std::max(end, at + 1);
  }
}

}  // namespace

std::set<std::string_view> sizing_keys(std::string_view architecture) {
  const ExpectedTensors expected = expected_tensors(architecture);
  std::set<std::string_view> keys, done;
  std::vector<std::string_view> expressions;
  const auto add = [&](std::string_view expression) {
    std::string_view function;
    for_each_word(expression, [&](std::string_view word) {
      if (function == "key" || function == "list" || function == "length") {
        if (!word.starts_with("tokenizer.") && !word.starts_with("general.")) keys.insert(word);
      } else if (const auto number = expected.numbers.find(word); number != expected.numbers.end()) {
        if (done.insert(word).second) expressions.push_back(number->second);
      }
      function = word;
    });
  };
  for (const ExpectedTensor& line : expected.lines)
    for (const std::string_view expression : {line.tensor, line.shape, line.layers, line.presence, line.when})
      add(expression);
  if (expected.lines.empty())
    for (const auto& [name, expression] : expected.numbers) expressions.push_back(expression);
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const std::string_view expression = expressions[i];  // add() may move the list
    add(expression);
  }
  return keys;
}

// Evaluates while it parses. The value of a malformed expression is not known.
struct ModelNumbers::Parser {
  ModelNumbers& numbers;
  std::string_view text;
  std::uint64_t layer;
  bool is_malformed = false;

  void need(bool condition) { is_malformed = is_malformed || !condition; }

  bool take(std::string_view token) {
    text = trimmed(text);
    if (!text.starts_with(token)) return false;
    if (token.size() == 1 && text.size() > 1 && text[1] == '=' && std::string_view("<>!").find(token) != token.npos)
      return false;
    text.remove_prefix(token.size());
    return true;
  }

  Number ternary() {
    const Number condition = either();
    if (!take("?")) return condition;
    const Number yes = ternary();
    need(take(":"));
    const Number no = ternary();
    if (condition) return *condition != 0 ? yes : no;
    return yes == no ? yes : Number();
  }

  Number either() { return joined("||", true, &Parser::both); }
  Number both() { return joined("&&", false, &Parser::compared); }

  // A term with the value `decides` makes the result, whatever the others are.
  Number joined(std::string_view token, bool decides, Number (Parser::*term)()) {
    Number left = (this->*term)();
    while (take(token)) {
      const Number right = (this->*term)();
      const auto is_decided = [&](const Number& each) { return each && (*each != 0) == decides; };
      if (is_decided(left) || is_decided(right))
        left = decides;
      else if (left && right)
        left = !decides;
      else
        left.reset();
    }
    return left;
  }

  Number compared() {
    const Number left = sum();
    constexpr std::string_view kOperators[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (std::size_t i = 0; i < std::size(kOperators); ++i) {
      if (!take(kOperators[i])) continue;
      const Number right = sum();
      if (!left || !right) return {};
      const bool results[] = {*left == *right, *left != *right, *left <= *right, *left >= *right,
                              *left<*right, *left> * right};
      return results[i];
    }
    return left;
  }

  Number sum() {
    Number left = product();
    for (;;) {
      const bool plus = take("+");
      if (!plus && !take("-")) return left;
      const Number right = product();
      std::int64_t result = 0;
      if (!left || !right ||
          (plus ? __builtin_add_overflow(*left, *right, &result) : __builtin_sub_overflow(*left, *right, &result)))
        left.reset();
      else
        left = result;
    }
  }

  Number product() {
    Number left = atom();
    for (;;) {
      const char operation = take("*") ? '*' : take("/") ? '/' : take("%") ? '%' : 0;
      if (operation == 0) return left;
      const Number right = atom();
      std::int64_t result = 0;
      if (!left || !right || (operation == '*' && __builtin_mul_overflow(*left, *right, &result)) ||
          (operation != '*' && *right <= 0))
        left.reset();
      else
        left = operation == '*' ? result : operation == '/' ? *left / *right : *left % *right;
    }
  }

  Number atom() {
    if (take("?")) return {};
    if (take("!")) {
      const Number number = atom();
      return number ? Number(*number == 0) : number;
    }
    if (take("(")) {
      const Number number = ternary();
      need(take(")"));
      return number;
    }
    text = trimmed(text);
    std::size_t size = 0;
    while (size < text.size() &&
           (text[size] == '_' || (text[size] >= 'a' && text[size] <= 'z') || (text[size] >= '0' && text[size] <= '9')))
      ++size;
    const std::string_view word = text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, text.empty() ? 0 : 1));
    need(!word.empty());
    if (word.empty()) return {};
    if (word[0] >= '0' && word[0] <= '9') {
      std::int64_t number = 0;
      std::from_chars(word.data(), word.data() + word.size(), number);
      return number;
    }
    if (text.starts_with('(')) return call(word);
    if (word == "i") return static_cast<std::int64_t>(layer);
    std::uint64_t of = 0;
    if (text.starts_with('[')) {
      text.remove_prefix(1);
      const Number index = ternary();
      need(take("]"));
      if (!index || *index < 0) return {};
      of = static_cast<std::uint64_t>(*index);
    }
    return numbers.number(word, of);
  }

  Number call(std::string_view function) {
    text.remove_prefix(1);
    if (function == "max") {
      const Number a = ternary();
      need(take(","));
      const Number b = ternary();
      need(take(")"));
      return a && b ? Number(std::max(*a, *b)) : Number();
    }
    const std::size_t end = text.find_first_of(",)");
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end));
    std::string_view fallback;
    if (take(",")) {
      std::size_t size = 0;
      for (int depth = 0; size < text.size() && (depth > 0 || text[size] != ')'); ++size)
        depth += (text[size] == '(') - (text[size] == ')');
      fallback = text.substr(0, size);
      text.remove_prefix(size);
    }
    need(take(")"));
    if (function == "has") return numbers.find(name, layer) != nullptr;
    const MetadataValue* const value = numbers.metadata(name);
    const auto list = value ? as_array(*value) : std::nullopt;
    if (function == "length" && list) return static_cast<std::int64_t>(list->count);
    if (value && function == "key" && !list) return number_of(*value);
    if (list && (function == "key" || function == "list")) return element(*list);
    return fallback.empty() ? Number() : numbers.value(fallback, layer);
  }

  Number element(const ArrayView& list) const {
    if (layer >= list.count || list.count > kMaxLayers) return {};
    const std::size_t width = metadata_type_bytes(list.element);
    if (width == 0 || list.bytes.size() / width <= layer) return {};
    return number_of({list.element, std::string(list.bytes.substr(layer * width, width))});
  }

  static Number number_of(const MetadataValue& value) {
    if (const auto flag = as_bool(value)) return *flag;
    return as_signed(value);
  }
};

ModelNumbers::ModelNumbers(const Model& model, std::string architecture, const ExpectedTensors& expected)
    : model_(model), architecture_(std::move(architecture)), expected_(expected) {
  for (const Tensor& tensor : model.tensors) tensors_.emplace(tensor.name, &tensor);
}

const Tensor* ModelNumbers::find(std::string_view name, std::uint64_t layer) {
  const auto found = tensors_.find(full_name(name, layer).value_or(""));
  return found == tensors_.end() ? nullptr : found->second;
}

std::optional<std::string> ModelNumbers::full_name(std::string_view name, std::uint64_t layer) {
  std::string full;
  while (!name.empty()) {
    const std::size_t open = name.find('{');
    full += name.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = name.find('}', open);
    const Number number = value(name.substr(open + 1, close - open - 1), layer);
    if (!number) return {};
    full += std::to_string(*number);
    name.remove_prefix(close + 1);
  }
  return full;
}

ModelNumbers::Number ModelNumbers::value(std::string_view expression, std::uint64_t layer) {
  Parser parser{*this, expression, layer};
  const Number result = parser.ternary();
  parser.need(trimmed(parser.text).empty());
  if (parser.is_malformed) malformed_ = true;
  return parser.is_malformed ? Number() : result;
}

ModelNumbers::Number ModelNumbers::number(std::string_view name, std::uint64_t layer) {
  const auto key = std::pair(name, layer);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const auto definition = expected_.numbers.find(name);
  known_[key] = {};  // also ends a definition by itself
  if (definition == expected_.numbers.end()) return {};
  const Number result = value(definition->second, layer);
  return known_[key] = result;
}

const MetadataValue* ModelNumbers::metadata(std::string_view key) const {
  if (key.starts_with("tokenizer.") || key.starts_with("general.")) return model_.metadata.find(key);
  return model_.metadata.find(fmt::format("{}.{}", architecture_, key));
}

std::vector<std::string> malformed_expressions() {
  std::vector<std::string> malformed;
  const ExpectedTensors none;
  const Model model;
  const auto check = [&](std::string_view expression) {
    ModelNumbers numbers(model, "", none);
    if (!expression.empty() && expression != "?") numbers.value(expression, 0);
    if (numbers.is_malformed()) malformed.emplace_back(expression);
  };
  for (const auto& row : table_rows(complete_model_table())) {
    if (row.at(1).ends_with(" =")) {
      check(row.at(2));
      continue;
    }
    for (const std::string_view term : sizes_of(row.at(2))) check(term);
    const std::size_t dots = row.at(3).find("..");
    if (dots != std::string_view::npos) {
      check(row.at(3).substr(0, dots));
      check(row.at(3).substr(dots + 2));
    }
    if (row.at(4).starts_with(kOptionalIf)) check(row.at(4).substr(kOptionalIf.size()));
    check(row.at(5));
  }
  return malformed;
}

}  // namespace ggufmill
