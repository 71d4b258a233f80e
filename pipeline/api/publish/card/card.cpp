#include "pipeline/api/publish/card/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <kainjow/mustache.hpp>

#include "pipeline/api/publish/card/card_values.h"
#include "pipeline/api/publish/card/markdown.h"
#include "pipeline/config/config_node.h"
#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_text.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace mustache = kainjow::mustache;
using Kind = CardPlaceholder::Kind;
using Component = mustache::component<std::string>;
using Tag = mustache::tag_type;

constexpr std::size_t kMaxTemplate = 1 << 20;
constexpr int kMaxSections = 1000;
constexpr int kMaxNesting = 16;                // sections within sections
constexpr std::size_t kMaxCard = 1 << 20;      // bytes
constexpr std::size_t kMaxSteps = 10'000'000;  // texts and tags that rendering visits

// A template with positions for messages.
class Template {
 public:
  Template(std::string_view text, const std::string& name) : text_(text), lines_{name, split_lines(text)} {}

  // Checks what parsing assumes, parses, and checks all names. Reports all errors of the last step.
  Status check() const;
  // Returns the text of a checked template with the values in place of its tags. Errors: the limits of a card.
  Result<std::string> render(const mustache::data& values) const;

 private:
  // Names that are known at a place: those of the whole card, and those of the lists around it.
  using Scope = std::vector<std::string>;

  Error error_at_byte(std::size_t byte, std::string what, std::string help = {}) const {
    return error_at(&lines_, position_of(text_, std::min(byte, text_.size())), std::move(what), std::move(help));
  }
  Status check_limits() const;
  Result<Component> parsed(const std::string& text) const;
  Error parse_error(const std::string& message) const;
  void check_names(const std::vector<Component>& components, const Scope& scope, Diagnostics& errors) const;
  void check_tag(const Component& component, const Scope& scope, Diagnostics& errors) const;
  Error unknown_name(const Component& component, const Scope& scope) const;
  const CardPlaceholder* find(const std::string& name, const Scope& scope) const;
  std::vector<std::string> known_names(const Scope& scope) const;

  std::string text_;
  ConfigText lines_;
  std::vector<CardPlaceholder> placeholders_ = card_placeholders();
};

Status Template::check_limits() const {
  if (text_.size() > kMaxTemplate)
    return usage_error(fmt::format("{}: the template has {} bytes, more than 1 MiB", lines_.name, text_.size()));
  if (const auto fault = find_text_fault(text_)) return error_at_byte(fault->offset, fault->what, fault->help);
  int sections = 0, depth = 0;
  for (std::size_t at = text_.find("{{"); at != text_.npos; at = text_.find("{{", at)) {
    const std::size_t tag = at, first = text_.find_first_not_of(" \t\n", at + 2);
    at = std::min(text_.find("}}", at), text_.size());
    if (first == text_.npos) continue;
    if (text_[first] == '=') return error_at_byte(tag, "a card's template cannot change the delimiters {{ and }}");
    if (text_[first] == '/') --depth;
    if (text_[first] != '#' && text_[first] != '^') continue;
    if (++sections > kMaxSections) return error_at_byte(tag, fmt::format("more than {} sections", kMaxSections));
    if (++depth > kMaxNesting)
      return error_at_byte(tag, fmt::format("sections are nested more than {} levels deep", kMaxNesting),
                           "end a section with {{/name}} before the next one begins");
  }
  return ok();
}

// Messages of the library: 'Unclosed section "files" at 120'.
Error Template::parse_error(const std::string& message) const {
  constexpr std::string_view kAt = " at ";
  std::string what = message;
  std::size_t byte = 0;
  if (const std::size_t at = message.rfind(kAt); at != message.npos) {
    const char* end = message.data() + message.size();
    if (std::from_chars(message.data() + at + kAt.size(), end, byte).ptr == end) what.resize(at);
  }
  if (!what.empty() && what[0] >= 'A' && what[0] <= 'Z') what[0] = static_cast<char>(what[0] - 'A' + 'a');
  std::ranges::replace(what, '"', '\'');
  return error_at_byte(byte, what, "{{#name}} and {{^name}} begin a section, and {{/name}} ends it");
}

Result<Component> Template::parsed(const std::string& text) const {
  mustache::context<std::string> context;
  mustache::context_internal<std::string> state{context};
  Component root;
  std::string message;
  mustache::parser<std::string>{text, state, root, message};
  if (!message.empty()) return parse_error(message);
  return root;
}

const CardPlaceholder* Template::find(const std::string& name, const Scope& scope) const {
  for (auto section = scope.rbegin(); section != scope.rend(); ++section)
    for (const CardPlaceholder& placeholder : placeholders_)
      if (placeholder.section == *section && placeholder.name == name) return &placeholder;
  return nullptr;
}

std::vector<std::string> Template::known_names(const Scope& scope) const {
  std::vector<std::string> names;
  for (const CardPlaceholder& placeholder : placeholders_)
    if (std::ranges::find(scope, placeholder.section) != scope.end() &&
        std::ranges::find(names, placeholder.name) == names.end())
      names.push_back(placeholder.name);
  return names;
}

Error Template::unknown_name(const Component& component, const Scope& scope) const {
  const std::string& name = component.tag.name;
  const std::vector<std::string> names = known_names(scope);
  const std::string near = did_you_mean(name, names);
  std::string help = near.empty() ? "" : fmt::format("did you mean {}? ", quoted_name(near));
  for (const CardPlaceholder& placeholder : placeholders_)
    if (placeholder.name == name)
      help += fmt::format("{} is known inside {{{{#{}}}}}; ", quoted_name(name), placeholder.section);
  help += fmt::format("known here: {}", fmt::join(names, ", "));
  return error_at_byte(component.position, fmt::format("unknown name {}", quoted_name(name)), help);
}

void Template::check_tag(const Component& component, const Scope& scope, Diagnostics& errors) const {
  const auto& [name, type] = std::tie(component.tag.name, component.tag.type);
  if (type == Tag::comment || type == Tag::section_end) return;
  const auto fail = [&](std::string what, std::string help) {
    errors.add(error_at_byte(component.position, std::move(what), std::move(help)));
  };
  if (type == Tag::partial) return fail("a card's template cannot include others", "write {{name}} for a value");
  const CardPlaceholder* placeholder = find(name, scope);
  if (placeholder == nullptr) return errors.add(unknown_name(component, scope));
  if (component.tag.is_section_begin()) return;
  if (placeholder->kind == Kind::kFlag || placeholder->kind == Kind::kList)
    return fail(fmt::format("{} has no text", quoted_name(name)),
                fmt::format("write {{{{#{0}}}}} and {{{{/{0}}}}} around what depends on it", name));
  if (placeholder->kind == Kind::kMarkdown && type == Tag::variable)
    return fail(fmt::format("{} is Markdown or YAML itself", quoted_name(name)),
                fmt::format("write {{{{{{{}}}}}}} to insert it as it is", name));
}

void Template::check_names(const std::vector<Component>& components, const Scope& scope, Diagnostics& errors) const {
  for (const Component& component : components) {
    if (component.is_text()) continue;
    if (errors.errors().size() >= kMaxErrors) return;
    check_tag(component, scope, errors);
    Scope inner = scope;
    const CardPlaceholder* section = find(component.tag.name, scope);
    if (section != nullptr && section->kind == Kind::kList && component.tag.type == Tag::section_begin)
      inner.push_back(section->name);
    check_names(component.children, inner, errors);
  }
}

Status Template::check() const {
  BOOST_OUTCOME_TRY(check_limits());
  BOOST_OUTCOME_TRY(const Component root, parsed(text_));
  Diagnostics errors;
  check_names(root.children, {""}, errors);
  if (!errors.empty()) return errors.together();
  return ok();
}

void append_text(std::string& out, std::string_view text) {
  for (const char c : text)
    if (c != '\r') out += c;
}

// Returns a checked template without what surrounds a tag of a section or a comment on a line of its own, including the
// newline, as Mustache prescribes.
std::string prepared(std::string_view text) {
  std::string out;
  std::size_t done = 0;  // bytes of `text` that were looked at
  for (std::size_t tag = text.find("{{"); tag != text.npos; tag = text.find("{{", done)) {
    const std::size_t end = text.find("}}", tag) + 2;                                   // every tag is closed
    const std::size_t line = tag == 0 ? 0 : text.find_last_not_of(" \t", tag - 1) + 1;  // npos + 1 is 0
    const std::size_t next = std::min(text.find_first_not_of(" \t\r", end), text.size());
    const bool begins = line == 0 || text[line - 1] == '\n';
    const bool ends = next == text.size() || text[next] == '\n';
    const char sigil = text[text.find_first_not_of(" \t\n", tag + 2)];
    const bool alone = begins && ends && std::string_view("#^/!").find(sigil) != std::string_view::npos;
    append_text(out, text.substr(done, (alone ? line : tag) - done));
    out += text.substr(tag, end - tag);
    done = alone ? std::min(next + 1, text.size()) : end;
  }
  append_text(out, text.substr(done));
  return out;
}

// Renders a parsed template. Sections that are nested in themselves multiply, so what it does is limited.
class Rendering {
 public:
  explicit Rendering(const mustache::data& values) : context_(&values) {}

  // Returns false beyond the limits.
  bool render(const std::vector<Component>& components) {  // NOLINT(misc-no-recursion): up to kMaxNesting
    return std::ranges::all_of(components,
                               [&](const Component& each) { return ++steps_ <= kMaxSteps && render(each); });
  }

  std::string release() { return std::move(out_); }

 private:
  bool render(const Component& component) {  // NOLINT(misc-no-recursion)
    if (component.is_text()) return add(component.text);
    const bool is_section = component.tag.is_section_begin(), is_variable = component.tag.type == Tag::variable;
    if (!is_section && !is_variable && component.tag.type != Tag::unescaped_variable) return true;
    const mustache::data* const value = context_.get(component.tag.name);
    if (is_section) return render_section(component, value);
    if (value == nullptr || !value->is_string()) return true;
    return add(is_variable ? markdown_text(value->string_value()) : value->string_value());
  }

  bool render_section(const Component& section, const mustache::data* value) {  // NOLINT(misc-no-recursion)
    const bool is_false = value == nullptr || value->is_false() || value->is_empty_list();
    if (is_false != (section.tag.type == Tag::section_begin_inverted)) return true;
    if (is_false) return render(section.children);
    if (!value->is_list()) return render_item(section, *value);
    return std::ranges::all_of(value->list_value(),
                               [&](const mustache::data& item) { return render_item(section, item); });
  }

  bool render_item(const Component& section, const mustache::data& item) {  // NOLINT(misc-no-recursion)
    context_.push(&item);
    const bool done = ++steps_ <= kMaxSteps && render(section.children);
    context_.pop();
    return done;
  }

  bool add(std::string_view text) {
    if (text.size() > kMaxCard - out_.size()) return false;
    out_ += text;
    return true;
  }

  mustache::context<std::string> context_;
  std::string out_;
  std::size_t steps_ = 0;
};

Result<std::string> Template::render(const mustache::data& values) const {
  BOOST_OUTCOME_TRY(const Component root, parsed(prepared(text_)));
  Rendering rendering(values);
  if (rendering.render(root.children)) return rendering.release();
  return usage_error(fmt::format("{}: the card would have more than {}", lines_.name, human_bytes(kMaxCard)),
                     "shorten what the sections of the template repeat; a list within itself repeats its items for "
                     "each of them");
}

}  // namespace

Result<std::string> render_card(const Card& card, std::string_view template_text, const std::string& template_name) {
  const Template checked(template_text, template_name);
  BOOST_OUTCOME_TRY(checked.check());
  return checked.render(card_values(card));
}

}  // namespace ggufmill
