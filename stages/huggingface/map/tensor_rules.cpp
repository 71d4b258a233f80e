// Rules of an architecture's map that make tensors, and the operations in them.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "stages/huggingface/map/architecture.h"

namespace ggufmill::huggingface {
namespace {

// ---- operations and their arguments ----

Result<ValueRule> read_list(const ConfigNode& node);

template <class Function>
Result<const Function*> function_at(const Origin& place, const std::string& name, std::span<const Function> known) {
  const auto found = std::ranges::find(known, name, &Function::name);
  if (found != known.end()) return &*found;
  std::vector<std::string> words;
  for (const Function& each : known) words.emplace_back(each.name);
  const std::string meant = did_you_mean(name, words);
  return error_at(
      place, fmt::format("unknown operation '{}'", name),
      meant.empty() ? "`ggufmill architectures --functions` lists them" : fmt::format("did you mean '{}'?", meant));
}

// Reads a list of arguments, or a single argument without a list. If the function takes exactly one argument, a list
// of several items is that argument.
Result<std::vector<ValueRule>> read_arguments(const ConfigNode& node, std::string_view name, std::size_t least,
                                              std::size_t most) {
  std::vector<ValueRule> arguments;
  if (node.is_list() && most == 1 && node.items.size() > 1) {
    BOOST_OUTCOME_TRY(arguments.emplace_back(), read_list(node));
  } else if (node.is_list()) {
    for (const ConfigNode& item : node.items) {
      BOOST_OUTCOME_TRY(arguments.emplace_back(), item.is_list() ? read_list(item) : read_value_rule(item));
    }
  } else {
    BOOST_OUTCOME_TRY(arguments.emplace_back(), read_value_rule(node));
  }
  if (arguments.size() < least || arguments.size() > most)
    return error_at(node, fmt::format("{} takes {} arguments, not {}", name,
                                      least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                                      arguments.size()));
  return arguments;
}

// Reads [a, b] as one argument: a list of two values.
Result<ValueRule> read_list(const ConfigNode& node) {
  ValueRule rule;
  rule.kind = ValueRule::Kind::kCall;
  rule.function = &*std::ranges::find(value_functions(), "list", &ValueFunction::name);
  rule.place = origin_of(node).where;
  for (const ConfigNode& item : node.items) {
    BOOST_OUTCOME_TRY(rule.arguments.emplace_back(), read_value_rule(item));
  }
  return rule;
}

Status read_step_list(const ConfigNode& list, std::vector<TensorStep>& into) {
  for (const ConfigNode& item : list.items) {
    TensorStep step;
    step.place = origin_of(item).where;
    if (const ConfigNode* parts = item.is_map() ? item.find("join") : nullptr) {
      for (const ConfigNode& part : parts->items) {
        if (!part.is_list())
          return error_at(part, "expected a list of operations", "for example [{slice: [1, 0, 64]}]");
        BOOST_OUTCOME_TRY(read_step_list(part, step.join.emplace_back()));
      }
      if (step.join.size() < 2) return error_at(item, "`join` takes at least two lists of operations");
      into.push_back(std::move(step));
      continue;
    }
    if (item.is_map() ? item.entries.size() != 1 : !item.is_scalar())
      return error_at(item, "expected an operation, or one with its arguments", "for example {slice: [1, 0, 128]}");
    const std::string& name = item.is_map() ? item.entries[0].key : item.scalar;
    BOOST_OUTCOME_TRY(step.operation, function_at(origin_of(item), name, tensor_operations()));
    if (item.is_map()) {
      BOOST_OUTCOME_TRY(step.arguments,
                        read_arguments(item.entries[0].value, name, step.operation->least, step.operation->most));
    } else if (step.operation->least > 0) {
      return error_at(item, fmt::format("{} needs arguments", name));
    }
    into.push_back(std::move(step));
  }
  return ok();
}

// ---- tensors ----

template <class Name>
Form<Name> name_form() {
  return converted<Name>(text(), [](const std::string& text, const ConfigNode& node) -> Result<Name> {
    auto name = Name::parse(text);
    if (!name) return error_at(node, name.error().what, name.error().help);
    return std::move(name).value();
  });
}

Form<NamePattern> pattern_form() { return name_form<NamePattern>().doc("Name, may contain {layer} and {expert}."); }

Form<std::vector<TensorStep>> steps_form() {
  Form<std::vector<TensorStep>> form;
  form.spec = {.kind = FieldKind::kList,
               .item = {{.kind = FieldKind::kAny, .doc = "Operation, or {operation: arguments}."}}};
  form.read_with([](const ConfigNode& node) -> Result<std::vector<TensorStep>> {
    std::vector<TensorStep> steps;
    BOOST_OUTCOME_TRY(read_step_list(node, steps));
    return steps;
  });
  return form;
}

Fields<TensorOutput> output_fields() {
  using Output = TensorOutput;
  return {
      field("to", &Output::name, name_form<NameTemplate>(), "Name in the GGUF.").required(),
      field("do", &Output::steps, steps_form(), "Operations on the tensor, in order."),
      when_field(&Output::when),
  };
}

// An output made from several tensors, as written.
struct PartSettings {
  TensorOutput output{};
  std::optional<NamePattern> stack{};
  std::optional<std::vector<NamePattern>> concat{}, of{};
  std::optional<std::string> repack{};
  Origin concat_origin{}, repack_origin{};
};

Result<TensorOutput> gathered(PartSettings part, const ConfigNode& node) {
  TensorOutput output = std::move(part.output);
  if (part.stack.has_value() + part.concat.has_value() + part.repack.has_value() != 1)
    return error_at(node, "expected one of `stack`, `concat`, and `repack`");
  if (part.stack) {
    output.gather = Gather::kStack;
    output.parts = {*part.stack};
    if (!output.count || !part.stack->name().has_expert())
      return error_at(node, "`stack` needs `count`, and {expert} in its name");
  } else if (part.concat) {
    output.gather = Gather::kConcat;
    output.parts = std::move(*part.concat);
    if (output.parts.empty()) return error_at(part.concat_origin, "`concat` must name at least one tensor");
    if (!output.count && std::ranges::any_of(output.parts, [](const auto& each) { return each.name().has_expert(); }))
      return error_at(part.concat_origin, "`concat` of names with {expert} needs `count`");
  } else {
    output.gather = Gather::kRepack;
    output.repack = find_repack_function(*part.repack);
    if (!output.repack) return error_at(part.repack_origin, fmt::format("unknown repacking '{}'", *part.repack));
    if (!part.of || part.of->size() != 2) return error_at(node, "`of` must name the two tensors to repack");
    if (!output.part_steps.empty()) return error_at(node, "`each` is only for `stack` and `concat`");
    output.parts = std::move(*part.of);
  }
  return output;
}

Form<TensorOutput> gathered_form() {
  using Part = PartSettings;
  Fields<TensorOutput> count{
      field("count", &TensorOutput::count, value_form(),
            "Number of tensors that {expert} stands for; if layers differ, a list of the numbers of all layers."),
      field("each", &TensorOutput::part_steps, steps_form(),
            "For `stack` and `concat`: operations on each of the tensors, before they are joined."),
  };
  return converted<TensorOutput>(
      map_of<Part>(
          fields_within(&Part::output, output_fields()) +
          Fields<Part>{field("stack", &Part::stack, name_form<NamePattern>(),
                             "Name with {expert}: stack the tensors of all experts in order.")} +
          fields_within(&Part::output, count) +
          Fields<Part>{
              field("concat", &Part::concat, list_of(pattern_form()),
                    "Tensors to join along their last dimension; each with {expert} stands for `count` tensors.")
                  .at(&Part::concat_origin),
              field("repack", &Part::repack, "Name of a repacking of the two tensors in `of`.")
                  .at(&Part::repack_origin),
              field("of", &Part::of, list_of(pattern_form()), "Tensors to repack."),
          })
          .doc("Output."),
      gathered);
}

// A rule for tensors as written.
struct TensorSettings {
  CheckpointRule rule{};
  std::optional<std::vector<NamePattern>> from{};
  std::optional<NameTemplate> to{};
  std::vector<TensorStep> steps{};
  std::optional<std::vector<TensorOutput>> outputs{}, together{};
  bool drop = false;
  Origin from_origin{};
};

Result<CheckpointRule> tensor_rule(TensorSettings given, const ConfigNode& node) {
  CheckpointRule rule = std::move(given.rule);
  rule.place = origin_of(node).where;
  if (rule.zero && !given.drop) return error_at(node, "`zero` requires `drop: true`");
  if (rule.by_layer && !rule.early) return error_at(node, "`by_layer` requires `early: true`");
  if (given.from.has_value() == given.together.has_value() ||
      (given.from && given.to.has_value() + given.outputs.has_value() + given.drop != 1))
    return error_at(node, "expected `from` with one of `to`, `outputs`, and `drop`, or `together`");
  if (given.from && given.from->empty()) return error_at(given.from_origin, "`from` must name at least one tensor");
  if (given.together && (rule.required || rule.required_in))
    return error_at(node,
                    "`required` is only for rules with `from`; missing parts are always an error if others exist");
  if (given.from) rule.from = std::move(*given.from);
  if (given.to) rule.outputs.emplace_back().name = std::move(*given.to);
  if (given.to) rule.outputs.back().steps = std::move(given.steps);
  for (auto* outputs : {&given.outputs, &given.together})
    if (*outputs) std::ranges::move(**outputs, std::back_inserter(rule.outputs));
  return rule;
}

struct ComputedSettings {
  ComputedRule rule{};
  std::string function{};
  ConfigNode arguments{};
  Origin function_origin{};
};

Result<ComputedRule> computed_rule(ComputedSettings given, const ConfigNode& node) {
  ComputedRule rule = std::move(given.rule);
  rule.place = origin_of(node).where;
  BOOST_OUTCOME_TRY(rule.function, function_at(given.function_origin, given.function, tensor_functions()));
  BOOST_OUTCOME_TRY(rule.arguments,
                    read_arguments(given.arguments, given.function, rule.function->least, rule.function->most));
  return rule;
}

}  // namespace

Form<std::vector<CheckpointRule>> tensor_rules_form() {
  using Settings = TensorSettings;
  using Rule = CheckpointRule;
  const Fields<Settings> first{
      field("from", &Settings::from, one_or_more(pattern_form(), "Any of these."),
            "Name in the checkpoint, or several; '.weight' or '.bias' may follow.")
          .at(&Settings::from_origin),
      field("to", &Settings::to, name_form<NameTemplate>(), "Name in the GGUF."),
      field("do", &Settings::steps, steps_form(), "Operations on the tensor, in order."),
      field("outputs", &Settings::outputs, list_of(map_of<TensorOutput>(output_fields()).doc("Output.")),
            "Several tensors made from one."),
      field("together", &Settings::together, list_of(gathered_form()), "Tensors made from several, written together."),
      field("drop", &Settings::drop, "Drop the tensor."),
  };
  const Fields<Rule> rest{
      field("zero", &Rule::zero, "With `drop`: report a value that is not 0 as an error."),
      field("only_first", &Rule::only_first,
            "Use the checkpoint's first tensor that matches, of each layer if the name has one; drop the others."),
      field("early", &Rule::early, "Write it before all others."),
      field("by_layer", &Rule::by_layer,
            "With `early`: in the order of the rules and layers, not of the checkpoint; before other early tensors."),
      field("last", &Rule::last, "Write it after all others."),
      field("required", &Rule::required, "Report an error if the checkpoint does not have it."),
      field("required_in", &Rule::required_in, value_form(),
            "A list with a flag for each layer: report an error if the checkpoint does not have it in a layer with a "
            "true one, or has it in another."),
      when_field(&Rule::when),
  };
  return list_of(
      converted<Rule>(map_of<Settings>(first + fields_within(&Settings::rule, rest)).doc("Rule."), tensor_rule));
}

Form<std::vector<ComputedRule>> computed_rules_form() {
  using Settings = ComputedSettings;
  Form<ConfigNode> arguments = any_value();
  arguments.spec = {.kind = FieldKind::kList, .item = {{.kind = FieldKind::kAny, .doc = "Argument."}}};
  const Fields<ComputedRule> name{field("to", &ComputedRule::name, "Name of the tensor.").required()},
      when{when_field(&ComputedRule::when)};
  return list_of(converted<ComputedRule>(
      map_of<Settings>(
          fields_within(&Settings::rule, name) +
          Fields<Settings>{
              field("function", &Settings::function, "Name of a function.").required().at(&Settings::function_origin),
              field("of", &Settings::arguments, arguments, "Arguments of the function.").required(),
          } +
          fields_within(&Settings::rule, when))
          .doc("Tensor."),
      computed_rule));
}

Form<std::vector<ShardRule>> shard_rules_form() {
  return list_of(
      map_of<ShardRule>({
                            field("from", &ShardRule::from, pattern_form(), "Name of the weight.").required(),
                            field("parts", &ShardRule::parts, list_of(value_form().doc("Number of rows.")),
                                  "Rows of each part in all ranks together: a number, or a list for the layers.")
                                .required(),
                            field("ranks", &ShardRule::ranks, value_form(),
                                  "A list of possible numbers of ranks; the first that the scales fit is used.")
                                .required(),
                        })
          .doc("Weight."));
}

}  // namespace ggufmill::huggingface
