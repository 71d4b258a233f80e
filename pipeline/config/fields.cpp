#include "pipeline/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/core/text.h"
#include "pipeline/core/wings.h"

namespace ggufmill {
namespace {

// Returns the node kind that a field of this kind accepts; kNull: any.
ConfigNode::Kind node_kind(const FieldSpec& spec) {
  switch (spec.kind) {
    case FieldKind::kAny:
    case FieldKind::kOneOf:
      return ConfigNode::Kind::kNull;
    case FieldKind::kList:
      return ConfigNode::Kind::kList;
    case FieldKind::kMap:
    case FieldKind::kDictionary:
      return ConfigNode::Kind::kMap;
    default:
      return ConfigNode::Kind::kScalar;
  }
}

std::string describe_found(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kList:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a map";
    case ConfigNode::Kind::kScalar:
      break;
  }
  return quoted_name(node.scalar);
}

Error wrong_kind(const ConfigNode& node, const FieldSpec& spec) {
  return error_at(node, fmt::format("expected {}, found {}", describe_value(spec), describe_found(node)),
                  spec.example.empty() ? "" : fmt::format("for example {}", spec.example));
}

// A single walk over a tree. Stops adding errors after kMaxErrors.
class Linter {
 public:
  Linter(Diagnostics& out, const Types& types) : out_(out), types_(types) {}

  void check(const ConfigNode& node, const FieldSpec& spec) {
    const std::size_t before = added_;
    if (node.kind == ConfigNode::Kind::kNull && spec.kind != FieldKind::kAny)
      add(wrong_kind(node, spec));
    else
      check_kind(node, spec);
    if (added_ == before && spec.check)
      if (std::string what = spec.check(node); !what.empty()) add(error_at(node, std::move(what)));
    if (added_ > before || full()) faulty_.insert(&node);
  }

  // Adds a node that was not checked, with everything in it.
  void give_up_on(const ConfigNode& node) {
    faulty_.insert(&node);
    for (const ConfigNode& item : node.items) give_up_on(item);
    for (const ConfigNode::Entry& entry : node.entries) give_up_on(entry.value);
  }

  FaultyNodes take_faulty() { return std::move(faulty_); }

  bool full() const { return added_ >= kMaxErrors; }

 private:
  void add(Error error) {
    if (full()) return;
    ++added_;
    out_.add(std::move(error));
  }

  void check_kind(const ConfigNode& node, const FieldSpec& spec) {
    if (spec.kind == FieldKind::kAny) return;
    if (spec.kind == FieldKind::kOneOf) return check_alternatives(node, spec);
    if (node_kind(spec) != node.kind) return add(wrong_kind(node, spec));
    if (spec.kind == FieldKind::kMap) return check_map(node, spec);
    if (spec.kind == FieldKind::kList) return check_list(node, spec);
    if (spec.kind == FieldKind::kDictionary) return check_dictionary(node, spec);
    if (std::optional<Error> fault = lint_scalar(node, spec, types_)) add(std::move(*fault));
  }

  void check_list(const ConfigNode& node, const FieldSpec& spec) {
    if (static_cast<double>(node.items.size()) < spec.minimum)
      add(error_at(node,
                   fmt::format("expected at least {}, found {}", counted(spec.minimum, "item"), node.items.size()),
                   spec.example.empty() ? "" : fmt::format("for example {}", spec.example)));
    for (const ConfigNode& item : node.items) {
      if (full()) return;
      check(item, spec.item.front());
    }
  }

  void check_dictionary(const ConfigNode& node, const FieldSpec& spec) {
    for (const ConfigNode::Entry& entry : node.entries) {
      if (full()) return;
      check(entry.value, spec.item.front());
    }
  }

  void check_map(const ConfigNode& node, const FieldSpec& spec) {
    std::set<std::string> meant;  // by misspelled keys, and not also reported as missing; "" stands for any
    for (const ConfigNode::Entry& entry : node.entries) {
      if (full()) return;
      const auto field = std::find_if(spec.fields.begin(), spec.fields.end(),
                                      [&](const FieldSpec& known) { return known.name == entry.key; });
      if (field != spec.fields.end())
        check(entry.value, *field);
      else
        meant.insert(unknown_key(entry, spec));
    }
    for (const FieldSpec& field : spec.fields)
      if (field.required && !node.find(field.name) && meant.count(field.name) == 0) add(missing_key(node, field));
    check_groups(node, spec, meant);
  }

  // Returns the intended key if a similar one exists; otherwise an empty string.
  std::string unknown_key(const ConfigNode::Entry& entry, const FieldSpec& spec) {
    const auto former = std::ranges::find(spec.former, entry.key, &FormerKey::name);
    if (former != spec.former.end()) {
      add(error_at(entry.value.text, entry.position, fmt::format("the key '{}' no longer exists", entry.key),
                   former->help));
      return "";
    }
    std::vector<std::string> names;
    for (const FieldSpec& field : spec.fields) names.push_back(field.name);
    std::string meant = did_you_mean(entry.key, names), help;
    if (std::string omitted = omitted_wing_help(entry.key); !omitted.empty()) {
      meant.clear();
      help = std::move(omitted);
    } else if (!meant.empty()) {
      help = fmt::format("did you mean '{}'?", meant);
    } else {
      std::vector<std::string> owners;  // the key is valid one level below
      for (const FieldSpec& field : spec.fields)
        if (has_key(field, entry.key)) owners.push_back(field.name);
      if (owners.size() == 1) help = fmt::format("'{}' is a key of '{}'; ", entry.key, owners[0]);
      help += fmt::format("known keys: {}", fmt::join(names, ", "));
    }
    add(error_at(entry.value.text, entry.position, fmt::format("unknown key {}", quoted_name(entry.key)),
                 std::move(help)));
    return meant;
  }

  // Returns true if a value of the field can be a map with that key.
  static bool has_key(const FieldSpec& field, const std::string& key) {
    return std::ranges::any_of(field.fields, [&](const FieldSpec& known) { return known.name == key; }) ||
           std::ranges::any_of(field.alternatives, [&](const FieldSpec& form) { return has_key(form, key); });
  }

  static Error missing_key(const ConfigNode& node, const FieldSpec& field) {
    return error_at(node, fmt::format("missing key '{}'", field.name),
                    field.example.empty() ? fmt::format("expected {}", describe_value(field))
                                          : fmt::format("for example {}: {}", field.name, field.example));
  }

  // Checks that exactly one field of each group is present.
  void check_groups(const ConfigNode& node, const FieldSpec& spec, const std::set<std::string>& meant) {
    std::map<std::string, std::vector<std::string>> groups;
    for (const FieldSpec& field : spec.fields)
      if (!field.group.empty()) groups[field.group].push_back(field.name);
    for (const auto& [group, names] : groups) check_group(node, spec, names, meant);
  }

  void check_group(const ConfigNode& node, const FieldSpec& spec, const std::vector<std::string>& names,
                   const std::set<std::string>& meant) {
    const auto is_member = [&](const std::string& key) {
      return std::find(names.begin(), names.end(), key) != names.end();
    };
    const ConfigNode::Entry* first = nullptr;
    for (const ConfigNode::Entry& entry : node.entries) {
      if (!is_member(entry.key)) continue;
      if (first)
        add(error_at(entry.value.text, entry.position,
                     fmt::format("'{}' and '{}' cannot be given together", entry.key, first->key),
                     "give exactly one of them"));
      else
        first = &entry;
    }
    const bool is_in_doubt = names.size() == spec.fields.size() && meant.contains("");
    if (first || is_in_doubt || std::any_of(meant.begin(), meant.end(), is_member)) return;
    const auto field = std::find_if(spec.fields.begin(), spec.fields.end(),
                                    [&](const FieldSpec& known) { return known.name == names.front(); });
    add(error_at(
        node, fmt::format("missing {}'{}'", names.size() > 1 ? "one of the keys " : "key ", fmt::join(names, "', '")),
        field->example.empty() ? "" : fmt::format("for example {}: {}", field->name, field->example)));
  }

  void check_alternatives(const ConfigNode& node, const FieldSpec& spec) {
    std::vector<Diagnostics> tries;
    for (const FieldSpec& alternative : spec.alternatives) {
      if (!accepts_kind_of(node, alternative)) continue;
      Linter linter(tries.emplace_back(), types_);
      linter.check(node, alternative);
      if (tries.back().empty()) return;
    }
    if (tries.empty()) return add(wrong_kind(node, spec));
    if (tries.size() > 1 && node.is_scalar()) return add(no_alternative(node, spec, tries));
    for (const Error& error : tries.front().errors()) add(error);
  }

  // Returns one error for several scalar alternatives, none of which matches: lists all of them, with the first help
  // text that one of them provides.
  static Error no_alternative(const ConfigNode& node, const FieldSpec& spec, const std::vector<Diagnostics>& tries) {
    std::string help;
    for (const Diagnostics& found : tries)
      if (help.empty()) help = found.errors().front().help;
    return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar), describe_value(spec)), std::move(help));
  }

  Diagnostics& out_;
  const Types& types_;
  std::size_t added_ = 0;
  FaultyNodes faulty_;
};

}  // namespace

FaultyNodes lint(const ConfigNode& node, const FieldSpec& spec, Diagnostics& out, const Types& types) {
  Linter linter(out, types);
  linter.check(node, spec);
  if (linter.full()) {
    out.add(usage_error(fmt::format("stopped after {} errors", kMaxErrors)));
    linter.give_up_on(node);
  }
  return linter.take_faulty();
}

bool accepts_kind_of(const ConfigNode& node, const FieldSpec& spec) {
  const ConfigNode::Kind kind = node_kind(spec);
  return kind == node.kind || kind == ConfigNode::Kind::kNull;
}

}  // namespace ggufmill
