#include "pipeline/config/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <istream>
#include <streambuf>
#include <string>
#include <vector>

#include "pipeline/config/tree_builder.h"
#include "pipeline/config/yaml_text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

constexpr std::size_t kLargestText = 1 << 20;
constexpr std::size_t kMaxMarks = 110000;  // a bracketed list with the maximum number of values needs fewer

// A message of yaml-cpp, and its explanation for users who do not know YAML's grammar.
struct Phrase {
  std::string_view theirs;  // prefix of yaml-cpp's message
  const char* what;
  const char* help;
  int behind = 0;  // bytes from the error to yaml-cpp's mark
};

constexpr const char* kQuoteHelp = "put text that contains any of { } [ ] , : # in quotes, such as '${NAME}'";
constexpr const char* kListHelp = "close the list with ]; text that contains any of { } [ ] , : # must be in quotes";
constexpr const char* kIndentHelp = "the keys of a map and the dashes of a list must start in the same column";
constexpr Phrase kPhrases[] = {
    {"end of map flow not found", "expected ',' or '}' here", kQuoteHelp},
    {"end of sequence flow not found", "expected ',' or ']' here", kListHelp},
    {"end of map not found", "expected a key here", kIndentHelp},
    {"end of sequence not found", "expected '- ' here", kIndentHelp},
    {"illegal map value", "a ':' is not allowed here", "put text that contains ': ' in quotes; check the indentation"},
    {"illegal map key", "a key is not allowed here", kIndentHelp},
    {"illegal block entry", "a '-' is not allowed here", kIndentHelp},
    {"illegal flow end", "this closes no open bracket", kQuoteHelp},
    {"illegal tab", "tabs cannot be used for indentation", "indent with spaces"},
    {"unknown token", "unquoted text cannot begin with this character", "put it in quotes"},
    {"unknown escape", "unknown escape in double quotes", "write \\\\ for a backslash, or use single quotes", 2},
    {"the referenced anchor", "aliases (*) are not supported", "put text that begins with * in quotes"},
};

// Returns the position, or the end of the last line if the position is past it.
Position inside(Position position, const ConfigText& shown) {
  const int lines = static_cast<int>(shown.lines.size());
  if (lines == 0 || position.line <= lines) return position;
  return {lines, static_cast<int>(shown.lines.back().size()) + 1, 1};
}

Error syntax_error(const YAML::Exception& exception, std::string_view text, const ConfigText& shown) {
  const Position place = inside(position_of(text, static_cast<std::size_t>(std::max(exception.mark.pos, 0))), shown);
  const std::string_view line = shown.lines.empty() ? "" : std::string_view(shown.lines[place.line - 1]);
  const std::size_t tab = line.substr(0, line.find_first_not_of(" \t")).find('\t');
  if (tab != std::string_view::npos)
    return error_at(&shown, {place.line, static_cast<int>(tab) + 1, 1}, "tabs cannot be used for indentation",
                    "indent with spaces");
  for (const Phrase& phrase : kPhrases)
    if (exception.msg.compare(0, phrase.theirs.size(), phrase.theirs) == 0)
      return error_at(&shown, {place.line, place.column - phrase.behind, std::max(1, phrase.behind)}, phrase.what,
                      phrase.help);
  return error_at(&shown, place, fmt::format("bad YAML: {}", exception.msg));
}

// Passes the text to yaml-cpp in pieces, and at most kMaxMarks beyond the position that yaml-cpp has reported to the
// builder. Until the brackets of a list are closed, yaml-cpp keeps the entire list as tokens of about 250 bytes each.
class BoundedText : public std::streambuf {
 public:
  BoundedText(std::string_view text, const TreeBuilder& builder) : text_(text), builder_(builder) {}

 private:
  int_type underflow() override {
    const std::size_t at = marks_.size() * kPart;
    if (at >= text_.size()) return traits_type::eof();
    const std::size_t described = std::min(builder_.reached() / kPart, marks_.size());
    const std::size_t before = described == 0 ? 0 : marks_[described - 1];
    if (!marks_.empty() && marks_.back() - before > kMaxMarks) throw ReadStopped{builder_.too_long()};
    part_ = std::string(text_.substr(at, kPart));
    const auto marks = std::count_if(part_.begin(), part_.end(), [](char c) {
      return std::string_view("[]{},:?&*!\"'").find(c) != std::string_view::npos;
    });
    marks_.push_back((marks_.empty() ? 0 : marks_.back()) + static_cast<std::size_t>(marks));
    setg(part_.data(), part_.data(), part_.data() + part_.size());
    return traits_type::to_int_type(part_[0]);
  }

  static constexpr std::size_t kPart = 4096;
  std::string_view text_;
  const TreeBuilder& builder_;
  std::string part_;
  std::vector<std::size_t> marks_;  // characters that may begin a token, up to the end of each piece
};

void walk(std::string_view text, TreeBuilder& builder) {
  BoundedText bounded(text, builder);
  std::istream stream(&bounded);
  stream.exceptions(std::ios::badbit);  // exceptions of BoundedText pass through
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(builder)) {
  }
}

// Returns true if the text could be read to its end.
bool try_walk(std::string_view text, const ConfigText& shown, TreeBuilder& builder, Diagnostics& errors) {
  try {
    walk(text, builder);
    return true;
  } catch (const ReadStopped& stopped) {
    errors.add(stopped.error);
  } catch (const YAML::Exception& exception) {
    errors.add(syntax_error(exception, text, shown));
  }
  return false;
}

std::optional<ConfigNode> read(std::string_view text, const ConfigText& shown, Diagnostics& errors,
                               YamlAuthor author = YamlAuthor::kUs) {
  if (const auto fault = find_text_fault(text)) {
    errors.add(error_at(&shown, position_of(text, fault->offset), fault->what, fault->help));
    return {};
  }
  TreeBuilder builder(text, shown, errors, author);
  if (!try_walk(text, shown, builder, errors)) return {};
  return builder.take();
}

std::optional<ConfigNode> read_named(std::string_view text, std::string name, ConfigTexts& texts, Diagnostics& errors,
                                     YamlAuthor author) {
  ConfigText& shown = texts.emplace_back(ConfigText{std::move(name), {}});
  if (text.size() > kLargestText) {
    errors.add(error_at(&shown, {}, "more than 1 MiB of YAML"));
    return {};
  }
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);  // a byte order mark
  shown.lines = split_lines(text);
  return read(text, shown, errors, author);
}

}  // namespace

std::optional<ConfigNode> read_yaml(std::string_view text, std::string name, ConfigTexts& texts, Diagnostics& errors) {
  return read_named(text, std::move(name), texts, errors, YamlAuthor::kUs);
}

std::optional<ConfigNode> read_foreign_yaml(std::string_view text, std::string name, ConfigTexts& texts,
                                            Diagnostics& errors) {
  return read_named(text, std::move(name), texts, errors, YamlAuthor::kOthers);
}

std::optional<ConfigNode> read_yaml_value(std::size_t begin, const ConfigText& shown, Diagnostics& errors) {
  const std::string& argument = shown.lines.front();
  return read(std::string(begin, ' ') + argument.substr(begin), shown, errors);
}

std::optional<ConfigDocument> read_document(std::string_view text, const std::string& name, Diagnostics& errors) {
  const auto texts = std::make_shared<ConfigTexts>();
  auto root = read_yaml(text, name, *texts, errors);
  if (!root || texts->empty()) return {};
  return ConfigDocument{std::shared_ptr<const ConfigText>(texts, &texts->front()), std::move(*root)};
}

bool names_file(std::string_view name) {
  return name_begin(name) != 0 || name.ends_with(".yaml") || name.ends_with(".recipe");
}

}  // namespace ggufmill
