#include "pipeline/config/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct Segment {
  std::string word;
  Position position;
};

// Splits an argument into its parts; returns nullopt if there is no path before a '='.
struct Override {
  std::vector<Segment> path;
  std::size_t value_begin = 0;
};

Position place(std::size_t begin, std::size_t length) {
  return {1, static_cast<int>(begin) + 1, static_cast<int>(std::max<std::size_t>(1, length))};
}

std::optional<Override> cut(const std::string& argument) {
  Override out;
  for (std::size_t at = 0; at < argument.size();) {
    const bool in_quote = argument[at] == '"';
    const std::size_t begin = at + (in_quote ? 1 : 0);
    const std::size_t end = in_quote ? argument.find('"', begin) : argument.find_first_of(".=", begin);
    if (end == std::string::npos || end == begin) return {};
    out.path.push_back({argument.substr(begin, end - begin), place(begin, end - begin)});
    at = end + (in_quote ? 1 : 0);
    if (at >= argument.size() || (argument[at] != '.' && argument[at] != '=')) return {};
    out.value_begin = ++at;
    if (argument[at - 1] == '=') return out;
  }
  return {};
}

bool is_container(const FieldSpec& spec) {
  return spec.kind == FieldKind::kMap || spec.kind == FieldKind::kDictionary || spec.kind == FieldKind::kList;
}

bool fits(const FieldSpec& spec, const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kNull) return is_container(spec);
  return spec.kind == FieldKind::kList ? node.is_list() : is_container(spec) && node.is_map();
}

// Walks from the root to the node that a path names, and adds nodes that are known to the field table but missing from
// the tree.
class Walk {
 public:
  Walk(const ConfigText& shown, const std::vector<Segment>& path, Diagnostics& errors)
      : shown_(shown), path_(path), errors_(errors) {}

  ConfigNode* to(ConfigNode& root, const FieldSpec& fields) {
    ConfigNode* node = &root;
    const FieldSpec* spec = &fields;
    while (node && at_ < path_.size()) {
      spec = container(*node, *spec);
      if (!spec) return nullptr;
      if (node->kind == ConfigNode::Kind::kNull) become(*node, *spec);
      node = step(*node, spec);
    }
    return node;
  }

 private:
  const Segment& here() const { return path_[at_]; }

  std::nullptr_t fail(std::string what, std::string help) {
    errors_.add(error_at(&shown_, here().position, std::move(what), std::move(help)));
    return nullptr;
  }

  ConfigNode blank() const {
    ConfigNode node;
    node.position = here().position;
    node.text = &shown_;
    return node;
  }

  // Returns the field table of the children of `node`; adds an error and returns null if `node` is a value without
  // children.
  const FieldSpec* container(const ConfigNode& node, const FieldSpec& spec) {
    if (fits(spec, node)) return &spec;
    for (const FieldSpec& alternative : spec.alternatives)
      if (fits(alternative, node)) return &alternative;
    return fail(fmt::format("nothing can be set inside {}", at_ == 0 ? "this file" : quoted_name(path_[at_ - 1].word)),
                fmt::format("it is {}: set it as a whole", describe_value(spec)));
  }

  // Returns the next node on the path; `spec` becomes the field table of that node.
  ConfigNode* step(ConfigNode& node, const FieldSpec*& spec) {
    if (spec->kind == FieldKind::kMap) return field(node, spec);
    const FieldSpec& parent = *spec;
    spec = &parent.item.front();
    return parent.kind == FieldKind::kList ? item(node) : entry(node, join(parent));
  }

  void become(ConfigNode& node, const FieldSpec& spec) const {
    node = blank();
    node.kind = spec.kind == FieldKind::kList ? ConfigNode::Kind::kList : ConfigNode::Kind::kMap;
  }

  ConfigNode* item(ConfigNode& list) {
    std::size_t index = 0;
    const std::string& word = here().word;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (error != std::errc() || stop != word.data() + word.size() || index > list.items.size())
      return fail(fmt::format("the list has no item {}", quoted_name(word)),
                  list.items.empty()
                      ? "the list is empty: 0 appends an item"
                      : fmt::format("items 0 to {} exist, {} appends one", list.items.size() - 1, list.items.size()));
    if (index == list.items.size()) list.items.push_back(blank());
    ++at_;
    return &list.items[index];
  }

  ConfigNode* field(ConfigNode& map, const FieldSpec*& spec) {
    std::vector<std::string> names;
    for (const FieldSpec& known : spec->fields) {
      names.push_back(known.name);
      if (known.name != here().word) continue;
      spec = &known;
      return entry(map, known.name);
    }
    const std::string meant = did_you_mean(here().word, names);
    return fail(fmt::format("unknown key {}", quoted_name(here().word)),
                meant.empty() ? fmt::format("known keys: {}", fmt::join(names, ", "))
                              : fmt::format("did you mean '{}'?", meant));
  }

  // Returns the key in a dictionary: one segment, or the rest of the path if the values have no parts.
  std::string join(const FieldSpec& dictionary) {
    std::string key = here().word;
    if (is_container(dictionary.item.front())) return key;
    while (at_ + 1 < path_.size()) key += "." + path_[++at_].word;
    return key;
  }

  ConfigNode* entry(ConfigNode& map, const std::string& key) {
    const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                    [&](const ConfigNode::Entry& known) { return known.key == key; });
    const Segment& segment = path_[at_];
    const ConfigNode fresh = blank();
    ++at_;
    if (found != map.entries.end()) return &found->value;
    map.entries.push_back({key, segment.position, fresh});
    return &map.entries.back().value;
  }

  const ConfigText& shown_;
  const std::vector<Segment>& path_;
  Diagnostics& errors_;
  std::size_t at_ = 0;
};

}  // namespace

void apply_override(ConfigNode& root, const FieldSpec& fields, const std::string& argument, ConfigTexts& texts,
                    Diagnostics& errors) {
  const ConfigText& shown = texts.emplace_back(ConfigText{"--set", {argument}, false});
  const std::optional<Override> parts = cut(argument);
  if (!parts || argument.find('\n') != std::string::npos) {
    errors.add(error_at(&shown, place(0, argument.size()), "expected PATH=VALUE on one line",
                        "for example outputs.0.gguf=out/a.gguf"));
    return;
  }
  std::optional<ConfigNode> value = read_yaml_value(parts->value_begin, shown, errors);
  ConfigNode changed = root;
  ConfigNode* target = value ? Walk(shown, parts->path, errors).to(changed, fields) : nullptr;
  if (!target) return;
  if (value->kind == ConfigNode::Kind::kNull) value->position = place(argument.size(), 1);
  *target = std::move(*value);
  root = std::move(changed);
}

}  // namespace ggufmill
