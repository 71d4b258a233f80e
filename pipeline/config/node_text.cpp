#include "pipeline/config/node_text.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "pipeline/config/job.h"
#include "pipeline/config/parameters.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/config/yaml_words.h"

namespace ggufmill {
namespace {

// Returns true if a scalar means the same within brackets without quotes.
bool is_plain_in_brackets(std::string_view text) {
  const auto is_harmless = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("._/+-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text != "-" && std::ranges::all_of(text, is_harmless);
}

// Writes values as YAML in brackets, of which JSON is a part.
class ValueWriter {
 public:
  // With `is_resolved`, no parameter is left in the values.
  ValueWriter(bool in_lines, bool is_resolved) : in_lines_(in_lines), is_resolved_(is_resolved) {}

  std::string text_of(const ConfigNode& node) {
    if (node.is_list()) return list(node);
    if (node.is_map()) return map(node);
    if (!node.is_scalar()) return "null";
    const bool is_plain = (!node.quoted || (is_resolved_ && node.substituted)) && is_plain_in_brackets(node.scalar);
    return is_plain ? node.scalar : quoted(node.scalar);
  }

 private:
  std::string quoted(const std::string& text) const { return is_resolved_ ? yaml_quoted(text) : double_quoted(text); }

  std::string list(const ConfigNode& node) {
    std::string out = "[";
    ++depth_;
    for (const ConfigNode& item : node.items) {
      if (&item != &node.items.front()) out += separator();
      out += line() + text_of(item);
    }
    --depth_;
    return out + (node.items.empty() ? "" : line()) + "]";
  }

  std::string map(const ConfigNode& node) {
    std::string out = "{";
    ++depth_;
    for (const ConfigNode::Entry& entry : node.entries) {
      if (&entry != &node.entries.front()) out += separator();
      out += line() + double_quoted(entry.key) + ": " + text_of(entry.value);
    }
    --depth_;
    return out + (node.entries.empty() ? "" : line()) + "}";
  }

  std::string separator() const { return in_lines_ ? "," : ", "; }
  std::string line() const { return in_lines_ ? "\n" + std::string(2 * depth_, ' ') : ""; }

  const bool in_lines_, is_resolved_;
  std::size_t depth_ = 0;
};

struct FoundPath {
  ConfigNode* node = nullptr;
  bool can_be_name = false;  // the field also takes names that are no files
};

// Returns the alternative of a field that a value is read by; null if none accepts it.
const FieldSpec* alternative_for(const ConfigNode& node, const FieldSpec& spec, const Types& types) {
  const auto taken = std::ranges::find_if(spec.alternatives, [&](const FieldSpec& each) {
    Diagnostics problems;
    if (accepts_kind_of(node, each)) lint(node, each, problems, types);
    return accepts_kind_of(node, each) && problems.empty();
  });
  return taken == spec.alternatives.end() ? nullptr : &*taken;
}

const FieldSpec* field_named(const std::string& name, const std::vector<FieldSpec>& fields) {
  const auto field = std::ranges::find(fields, name, &FieldSpec::name);
  return field == fields.end() ? nullptr : &*field;
}

// Removes the fields that FieldSpec::is_for_program is true for.
void remove_arguments(ConfigNode& node, const FieldSpec& spec,  // NOLINT(misc-no-recursion): as deep as the file
                      const Types& types) {
  if (spec.kind == FieldKind::kOneOf) {
    if (const FieldSpec* const taken = alternative_for(node, spec, types)) remove_arguments(node, *taken, types);
  } else if (spec.kind == FieldKind::kList) {
    for (ConfigNode& item : node.items) remove_arguments(item, spec.item.front(), types);
  } else if (spec.kind == FieldKind::kDictionary) {
    for (ConfigNode::Entry& entry : node.entries) remove_arguments(entry.value, spec.item.front(), types);
  } else if (spec.kind == FieldKind::kMap) {
    std::erase_if(node.entries, [&](const ConfigNode::Entry& entry) {
      const FieldSpec* const field = field_named(entry.key, spec.fields);
      return field && field->is_for_program;
    });
    for (ConfigNode::Entry& entry : node.entries)
      if (const FieldSpec* const field = field_named(entry.key, spec.fields))
        remove_arguments(entry.value, *field, types);
  }
}

// Finds the paths in a tree by its field table.
class PathFinder {
 public:
  using IsFile = std::function<bool(const std::string& value)>;

  // `is_file` tells which texts are paths; it may be empty.
  PathFinder(const Types& types, std::vector<FoundPath>& paths, const IsFile& is_file = {})
      : types_(types), paths_(paths), is_file_(is_file) {}

  void find(ConfigNode& node, const FieldSpec& spec) {  // NOLINT(misc-no-recursion): the depth is that of the file
    if (spec.kind == FieldKind::kOneOf) {
      if (const FieldSpec* const taken = alternative_for(node, spec, types_)) find(node, *taken);
    } else if (spec.kind == FieldKind::kPath && node.is_scalar()) {
      paths_.push_back({&node, false});
    } else if (spec.kind == FieldKind::kString && node.is_scalar()) {
      if (is_file_ && names_file(node.scalar) && is_file_(node.scalar)) paths_.push_back({&node, true});
    } else if (spec.kind == FieldKind::kList) {
      for (ConfigNode& item : node.items) find(item, spec.item.front());
    } else if (spec.kind == FieldKind::kDictionary) {
      for (ConfigNode::Entry& entry : node.entries) find(entry.value, spec.item.front());
    } else if (spec.kind == FieldKind::kMap) {
      for (ConfigNode::Entry& entry : node.entries)
        if (const FieldSpec* const field = field_named(entry.key, spec.fields)) find(entry.value, *field);
    }
  }

 private:
  const Types& types_;
  std::vector<FoundPath>& paths_;
  const IsFile is_file_;
};

// Reads a resolved pipeline file: what looks like a parameter is escaped.
std::optional<ConfigNode> read_resolved(const std::string& text, const std::string& name, ConfigTexts& texts,
                                        Diagnostics& errors) {
  std::optional<ConfigNode> root = read_yaml(text, name, texts, errors);
  if (root) substitute_parameters(*root, {}, texts, errors);
  return root;
}

void remove_undeciding(ConfigNode& map, const auto& options) {
  std::erase_if(map.entries, [&](const ConfigNode::Entry& entry) {
    return std::ranges::any_of(options, [&](const AnyForm& option) { return option.spec.name == entry.key; }) &&
           !decides_bytes(entry.key);
  });
}

// Returns the targets of the outputs.
std::set<std::string> targets_in(ConfigNode& root, const Registry& registry) {
  std::vector<FoundPath> paths;
  for (ConfigNode::Entry& section : root.entries)
    if (section.key == "outputs")
      for (ConfigNode& output : section.value.items)
        for (ConfigNode::Entry& entry : output.entries)
          for (const SinkSpec& sink : registry.sinks)
            if (sink.field.name == entry.key) PathFinder(registry.types, paths).find(entry.value, sink.field);
  std::set<std::string> targets;
  for (const FoundPath& path : paths) targets.insert(path.node->scalar);
  return targets;
}

}  // namespace

std::string yaml_of(const ConfigNode& node, YamlLayout layout) {
  return ValueWriter(layout == YamlLayout::kLines, false).text_of(node);
}

std::string resolved_yaml_of(const ConfigNode& root) {
  ConfigNode resolved = root;
  std::erase_if(resolved.entries, [](const ConfigNode::Entry& entry) { return entry.key == parameters_field().name; });
  return ValueWriter(true, true).text_of(resolved) + "\n";
}

Result<std::string> with_other_paths(const std::string& text, const std::string& name, const Registry& registry,
                                     const ReplacePath& replace,
                                     const std::function<bool(const std::string& value)>& is_file) {
  ConfigTexts texts;
  Diagnostics errors;
  std::optional<ConfigNode> root = read_resolved(text, name, texts, errors);
  if (!errors.empty()) return errors.together();
  const FieldSpec fields = job_fields(registry);
  if (lint(*root, fields, errors, registry.types); !errors.empty()) return errors.together();
  const std::set<std::string> targets = targets_in(*root, registry);
  std::vector<FoundPath> paths;
  PathFinder(registry.types, paths, is_file).find(*root, fields);
  for (const FoundPath& path : paths) {
    std::string& value = path.node->scalar;
    value = replace(value, targets.contains(value) ? PathUse::kWritten : PathUse::kRead);
    if (path.can_be_name && !names_file(value)) value.insert(0, "./");
  }
  return resolved_yaml_of(*root);
}

Result<std::string> deciding_part_of(const std::string& text, const std::string& name, const Registry& registry) {
  ConfigTexts texts;
  Diagnostics errors;
  std::optional<ConfigNode> root = read_resolved(text, name, texts, errors);
  if (!errors.empty()) return errors.together();
  remove_undeciding(*root, job_options().list);
  for (ConfigNode::Entry& section : root->entries)
    if (section.key == "outputs")
      for (ConfigNode& output : section.value.items) remove_undeciding(output, output_options().list);
  remove_arguments(*root, job_fields(registry), registry.types);
  return resolved_yaml_of(*root);
}

}  // namespace ggufmill
