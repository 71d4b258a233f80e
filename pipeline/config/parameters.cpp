#include "pipeline/config/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxSubstituted = 1 << 20;  // bytes of all values that replace parameters

struct Parameter {
  std::optional<std::string> value;
  bool reported = false;  // a missing value is reported only once
};
using Parameters = std::map<std::string, Parameter, std::less<>>;

bool is_parameter_name(std::string_view name) {
  const auto is_letter = [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return !name.empty() && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  return names;
}

// Returns the declared parameters, with values from defaults and the environment. The lint reports errors in the form
// of the block.
Parameters declared(const ConfigNode& root, Diagnostics& errors) {
  Parameters parameters;
  const ConfigNode* block = root.find("parameters");
  if (!block) return parameters;
  for (const ConfigNode::Entry& entry : block->entries) {
    if (!is_parameter_name(entry.key)) {
      errors.add(error_at(entry.value.text, entry.position,
                          fmt::format("{} is not a parameter name", quoted_name(entry.key)),
                          "use letters, digits and '_'"));
      continue;
    }
    Parameter& parameter = parameters[entry.key];
    const ConfigNode* value = entry.value.find("default");
    if (const auto environment = environment_variable(entry.key.c_str()))
      parameter.value = *environment;
    else if (value && value->is_scalar())
      parameter.value = value->scalar;
  }
  return parameters;
}

Error argument_error(const ConfigText& shown, std::size_t length, std::string what, std::string help) {
  return error_at(&shown, {1, 1, static_cast<int>(std::max<std::size_t>(1, length))}, std::move(what), std::move(help));
}

std::string help_of(const std::string& name, const Parameters& parameters) {
  const std::string meant = did_you_mean(name, names_of(parameters));
  return meant.empty() ? fmt::format("declare it: parameters: {{{}: {{}}}}", name)
                       : fmt::format("did you mean '{}'?", meant);
}

// Applies the values given on the command line.
void take_given(const std::vector<std::string>& given, Parameters& parameters, ConfigTexts& texts,
                Diagnostics& errors) {
  std::map<std::string, bool> seen;
  for (const std::string& argument : given) {
    const ConfigText& shown = texts.emplace_back(ConfigText{"--param", {argument}, false});
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto found = parameters.find(name);
    if (equals == std::string::npos)
      errors.add(argument_error(shown, argument.size(), "expected NAME=value", ""));
    else if (found == parameters.end())
      errors.add(argument_error(shown, equals,
                                fmt::format("the pipeline file does not declare parameter {}", quoted_name(name)),
                                help_of(name, parameters)));
    else if (!seen.emplace(name, true).second)
      errors.add(argument_error(shown, equals, fmt::format("parameter {} is given twice", quoted_name(name)), ""));
    else
      found->second.value = argument.substr(equals + 1);
  }
}

// A single walk over a tree that replaces parameters in place.
class Substitution {
 public:
  Substitution(Parameters& parameters, Diagnostics& errors) : parameters_(parameters), errors_(errors) {}

  void walk(ConfigNode& node) {
    if (substituted_ > kMaxSubstituted) return;
    if (node.is_scalar()) replace(node);
    for (ConfigNode& item : node.items) walk(item);
    for (ConfigNode::Entry& entry : node.entries) {
      if (entry.key.find("${") != std::string::npos)
        errors_.add(error_at(entry.value.text, entry.position, "parameters cannot be used in a key"));
      walk(entry.value);
    }
  }

 private:
  void replace(ConfigNode& node) {
    const std::string& text = node.scalar;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      if (text.compare(at, 3, "$${") == 0) {
        out += "${";
        at += 3;
      } else if (text.compare(at, 2, "${") == 0) {
        const std::size_t end = text.find('}', at);
        if (end == std::string::npos) {
          errors_.add(error_at(node, "'${' is not closed", "write ${NAME}, or $${ for a literal ${"));
          return;
        }
        const std::string* value = value_of(text.substr(at + 2, end - at - 2), node);
        if (!value || !count(*value, node)) return;
        out += *value;
        node.substituted = true;
        at = end + 1;
      } else {
        out += text[at++];
      }
    }
    node.scalar = std::move(out);
  }

  bool count(const std::string& value, const ConfigNode& node) {
    substituted_ += value.size();
    if (substituted_ <= kMaxSubstituted) return true;
    errors_.add(error_at(node, fmt::format("the values of parameters add more than {}", human_bytes(kMaxSubstituted)),
                         "use shorter values, or refer to them less often"));
    return false;
  }

  const std::string* value_of(const std::string& name, const ConfigNode& node) {
    const auto found = parameters_.find(name);
    if (found == parameters_.end()) {
      const bool fit = is_parameter_name(name);
      errors_.add(error_at(node, fmt::format("parameter {} is not declared", quoted_name(name)),
                           fit ? help_of(name, parameters_) : "write ${NAME}, or $${ for a literal ${"));
      return nullptr;
    }
    Parameter& parameter = found->second;
    if (parameter.value) return &*parameter.value;
    if (!parameter.reported)
      errors_.add(
          error_at(node, fmt::format("parameter {} has no value", quoted_name(name)),
                   fmt::format("give --param {}=VALUE, set it in the environment, or declare a default", name)));
    parameter.reported = true;
    return nullptr;
  }

  Parameters& parameters_;
  Diagnostics& errors_;
  std::size_t substituted_ = 0;  // bytes
};

}  // namespace

FieldSpec parameters_field() {
  FieldSpec doc{.name = "doc", .doc = "Purpose of the parameter.", .example = "the model to read"};
  FieldSpec fallback{.name = "default",
                     .doc = "Value used verbatim if neither --param nor the environment provides one.",
                     .example = "llama.gguf"};
  FieldSpec parameter{.kind = FieldKind::kMap, .doc = "One parameter.", .fields = {doc, fallback}};
  return {.name = "parameters",
          .kind = FieldKind::kDictionary,
          .doc =
              "Parameters that values can refer to as ${NAME}. Each is set by --param NAME=VALUE, else by the "
              "environment, else by its default. Write $${ for a literal ${.",
          .example = "{MODEL: {doc: the model to read, default: llama.gguf}, OUT: {}}",
          .item = {parameter}};
}

void substitute_parameters(ConfigNode& root, const std::vector<std::string>& given, ConfigTexts& texts,
                           Diagnostics& errors) {
  Parameters parameters = declared(root, errors);
  take_given(given, parameters, texts, errors);
  Substitution substitution(parameters, errors);
  for (ConfigNode::Entry& entry : root.entries)
    if (entry.key != "parameters") substitution.walk(entry.value);
}

}  // namespace ggufmill
