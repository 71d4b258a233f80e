#include "pipeline/api/operations/given_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using Kind = ConfigNode::Kind;

// Converts JSON values to nodes, and writes the line that errors about them show.
class NodeMaker {
 public:
  NodeMaker(ConfigText& text) : text_(text), line_(text.lines.front()) {}

  ConfigNode node_of(const json::value& value) {
    ConfigNode node;
    node.text = &text_;
    node.position = {1, static_cast<int>(line_.size()) + 1, 1};
    const std::size_t begin = line_.size();
    if (const json::array* const items = value.if_array())
      add_items(*items, node);
    else if (const json::object* const members = value.if_object())
      add_entries(*members, node);
    else
      add_scalar(value, node);
    node.position.length = static_cast<int>(line_.size() - begin);
    return node;
  }

 private:
  void add_scalar(const json::value& value, ConfigNode& node) {
    const std::string written = to_json_text(value);
    line_ += written;
    if (value.is_null()) return;
    node.kind = Kind::kScalar;
    node.quoted = value.is_string();
    node.scalar = value.is_string() ? std::string(value.get_string()) : written;
    if (value.is_double()) node.scalar = written_json(value);  // "1.0" is not an integer
  }

  void add_items(const json::array& items, ConfigNode& node) {
    node.kind = Kind::kList;
    line_ += '[';
    for (const json::value& item : items) {
      if (!node.items.empty()) line_ += ", ";
      node.items.push_back(node_of(item));
    }
    line_ += ']';
  }

  void add_entries(const json::object& members, ConfigNode& node) {
    node.kind = Kind::kMap;
    line_ += '{';
    for (const auto& [key, value] : members) {
      if (!node.entries.empty()) line_ += ", ";
      const Position position{1, static_cast<int>(line_.size()) + 1, static_cast<int>(key.size()) + 2};
      line_ += to_json_text(json::value(key)) + ": ";
      node.entries.push_back({std::string(key), position, node_of(value)});
    }
    line_ += '}';
  }

  ConfigText& text_;
  std::string& line_;
};

bool is_text(const OperationOption& option) {
  return option.field.spec.kind == FieldKind::kString || option.field.spec.kind == FieldKind::kPath;
}

// In JSON, an empty text and, where it means that the machine decides, 0 stand for no value.
bool is_none(const OperationOption& option, const ConfigNode& node) {
  if (node.kind == Kind::kNull) return true;
  if (node.kind != Kind::kScalar || option.field.spec.required) return false;
  return (node.scalar.empty() && is_text(option)) || (option.zero_is_none && !node.quoted && node.scalar == "0");
}

}  // namespace

const GivenOptions::Given* GivenOptions::find(std::string_view name) const {
  const auto found = std::ranges::find_if(given_, [&](const Given& each) { return each.option->name() == name; });
  return found == given_.end() ? nullptr : &*found;
}

bool GivenOptions::replaces_words() const {
  return std::ranges::any_of(given_, [](const Given& each) { return each.option->words_are_replaced; });
}

ConfigText& GivenOptions::shown(const OperationOption& option, std::string line) {
  return texts_.emplace_back(ConfigText{names_.of(option.name()), {std::move(line)}, false});
}

void GivenOptions::add(const OperationOption& option, ConfigNode node) {
  const auto same =
      std::ranges::find_if(given_, [&](const Given& each) { return each.option->name() == option.name(); });
  if (option.is_list() && node.kind == Kind::kScalar) {
    ConfigNode list;
    list.kind = Kind::kList;
    list.text = node.text;
    list.position = node.position;
    list.items.push_back(std::move(node));
    node = std::move(list);
  }
  if (same == given_.end())
    given_.push_back({&option, std::move(node)});
  else if (same->node.is_list() && node.is_list())
    std::ranges::move(node.items, std::back_inserter(same->node.items));
  else
    same->node = std::move(node);
}

void GivenOptions::add_word(const OperationOption& option, const std::string& word) {
  const std::string before = option.is_word() ? "" : names_.of(option.name()) + " ";
  ConfigNode node;
  node.kind = Kind::kScalar;
  node.scalar = word;
  node.text = &shown(option, before + word);
  node.position = {1, static_cast<int>(before.size()) + 1, std::max(1, static_cast<int>(word.size()))};
  if (word.empty() && !is_text(option) && !option.is_list()) {  // nothing, as in YAML
    node.kind = Kind::kNull;
    node.position = {};
  }
  add(option, std::move(node));
}

void GivenOptions::add_flag_value(const OperationOption& option, const OptionFlag& flag, const std::string& word) {
  const std::string before = "--" + flag.name + " ";
  ConfigNode item;
  item.kind = Kind::kScalar;
  item.scalar = word;
  item.text = &texts_.emplace_back(ConfigText{"--" + flag.name, {before + word}, false});
  item.position = {1, static_cast<int>(before.size()) + 1, std::max(1, static_cast<int>(word.size()))};
  const auto within = [&](Kind kind) {
    ConfigNode outer;
    outer.kind = kind;
    outer.text = item.text;
    outer.position = item.position;
    return outer;
  };
  if (!flag.value.empty()) {
    ConfigNode object = within(Kind::kMap);
    object.entries.push_back({flag.value, item.position, std::move(item)});
    item = std::move(object);
  }
  ConfigNode list = within(Kind::kList);
  list.items.push_back(std::move(item));
  add(option, std::move(list));
}

void GivenOptions::add_json(const OperationOption& option, const json::value& value) {
  ConfigText& text = shown(option, names_.of(option.name()));
  if (text.lines.front().ends_with('"')) text.lines.front() += ": ";
  if (option.is_word() && !text.lines.front().ends_with(' ')) text.lines.front() += '=';
  ConfigNode node = NodeMaker(text).node_of(value);
  if (!is_none(option, node)) add(option, std::move(node));
}

void GivenOptions::add_flag(const OperationOption& option, const OptionFlag& flag) {
  Diagnostics ignored;  // values of flags are ours
  ConfigText& text = texts_.emplace_back(ConfigText{"--" + flag.name, {flag.value}, false});
  if (std::optional<ConfigNode> node = read_yaml_value(0, text, ignored)) add(option, std::move(*node));
}

Status GivenOptions::read(const std::vector<OperationOption>& options, const Types& types, void* into) const {
  Diagnostics errors;
  for (const OperationOption& option : options) {
    const Given* const given = find(option.name());
    if (!given) {
      if (option.field.spec.required && !replaces_words())
        errors.add(usage_error(
            fmt::format("{} is missing", names_.of(option.name())),
            fmt::format("it is {}: {}", describe_value(option.field.spec), names_.in_text(option.field.spec.doc))));
      continue;
    }
    Diagnostics found;
    lint(given->node, option.field.spec, found, types);
    const Status done = found.empty() ? option.field.read_into(given->node, into) : found.together();
    if (!done) errors.add(names_.in_error(done.error()));
  }
  if (!errors.empty()) return errors.together();
  return ok();
}

Status add_members(const json::object& members, const std::vector<OperationOption>& options, GivenOptions& to) {
  Diagnostics errors;
  std::vector<std::string> known;
  for (const OperationOption& option : options)
    if (!option.command_line_only) known.push_back(option.name());
  for (const auto& member : members) {
    const std::string name(member.key());
    if (std::ranges::count(known, name) != 0) {
      to.add_json(*std::ranges::find(options, name, &OperationOption::name), member.value());
      continue;
    }
    const std::string meant = did_you_mean(name, known);
    errors.add(usage_error(
        fmt::format("unknown option {}", quoted_name(name)),
        meant.empty() ? fmt::format("options: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", meant)));
  }
  if (!errors.empty()) return errors.together();
  return ok();
}

Result<std::shared_ptr<const void>> read_request(const OperationSpec& operation, const GivenOptions& given,
                                                 const Types& types) {
  const std::shared_ptr<void> request = operation.make_request();
  BOOST_OUTCOME_TRY(given.read(operation.options, types, request.get()));
  if (operation.check)
    if (const Status checked = operation.check(request.get()); !checked) return given.names().in_error(checked.error());
  return std::shared_ptr<const void>(request);
}

}  // namespace ggufmill
