#include "stages/quantize/recipe_list.h"

#include <fmt/format.h>

#include <sstream>

#include "pipeline/config/config_node.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::string_view kBlank = " \t\r";

// A part of a line.
struct LinePart {
  std::string text;
  Position position;
};

LinePart trimmed(const std::string& line, int number, std::size_t begin, std::size_t end) {
  begin = std::min(line.find_first_not_of(kBlank, begin), end);
  while (end > begin && kBlank.find(line[end - 1]) != kBlank.npos) --end;
  const auto length = static_cast<int>(std::max<std::size_t>(end - begin, 1));
  return {line.substr(begin, end - begin), {number, static_cast<int>(begin) + 1, length}};
}

class ListReader {
 public:
  ListReader(std::string_view text, const std::string& name, const Types& types) : types_(types) {
    shown_.name = name;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) shown_.lines.push_back(std::move(line));
  }

  Result<std::vector<Rule>> read() {
    std::vector<Rule> rules;
    for (std::size_t i = 0; i < shown_.lines.size(); ++i) {
      const LinePart line = trimmed(shown_.lines[i], static_cast<int>(i) + 1, 0, shown_.lines[i].size());
      if (line.text.empty() || line.text.starts_with('#')) continue;
      if (auto rule = rule_of(shown_.lines[i], line); rule)
        rules.push_back(std::move(rule).value());
      else
        errors_.add(rule.error());
    }
    if (!errors_.empty()) return errors_.together();
    if (rules.empty())
      return Error{ExitCode::kUsage, shown_.name, "has no line REGEX=TYPE", "", "check that this is the right file"};
    return rules;
  }

 private:
  // A type has no equals sign, but a pattern may.
  Result<Rule> rule_of(const std::string& line, const LinePart& whole) const {
    const std::size_t equals = line.rfind('=');
    if (equals == line.npos)
      return error_at(&shown_, whole.position, "this line is neither REGEX=TYPE nor a comment (#)");
    const int number = whole.position.line;
    const LinePart pattern = trimmed(line, number, 0, equals), type = trimmed(line, number, equals + 1, line.size());
    if (pattern.text.empty() || type.text.empty())
      return error_at(&shown_, whole.position, "REGEX=TYPE needs both a regular expression and a type");
    Rule rule;
    rule.type = types_.find_choice(type.text);
    if (!rule.type) {
      const Error unknown = unknown_type(type.text, types_);
      return error_at(&shown_, type.position, unknown.what, unknown.help);
    }
    auto compiled = Pattern::compile(pattern.text);
    if (!compiled) return error_at(&shown_, pattern.position, compiled.error().what, compiled.error().help);
    rule.condition.match = std::move(compiled).value();
    rule.text = fmt::format("line {}: {}", number, pattern.text);
    return rule;
  }

  const Types& types_;
  ConfigText shown_;
  Diagnostics errors_;
};

}  // namespace

bool names_recipe_list(std::string_view path) { return path.ends_with(".recipe"); }

Result<std::vector<Rule>> parse_recipe_list(std::string_view text, const std::string& name, const Types& types) {
  return ListReader(text, name, types).read();
}

}  // namespace ggufmill
