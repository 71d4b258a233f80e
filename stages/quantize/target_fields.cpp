// Fields of a target and their parsing.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "stages/quantize/exclusion.h"
#include "stages/quantize/target.h"

namespace ggufmill {
namespace {

constexpr std::string_view kFields[] = {"candidates", "exclude", "measured", "objective", "groups", "bounds"};

// Default candidates: every size from 2 to 8 bits. IQ types for tensors without importance, and the smallest IQ types
// in any case, are used only on request.
constexpr std::string_view kCandidates[] = {"IQ2_S",  "Q2_K", "IQ3_XXS", "IQ3_S", "Q3_K",
                                            "IQ4_XS", "Q4_K", "Q5_K",    "Q6_K",  "Q8_0"};

FieldSpec type_field(std::string name, std::string doc) {
  FieldSpec field{std::move(name), FieldKind::kTypeName, std::move(doc)};
  field.example = "Q4_K";
  return field;
}

FieldSpec pattern_field(std::string name, std::string doc, std::string example) {
  FieldSpec field{std::move(name), FieldKind::kRegex, std::move(doc)};
  field.example = std::move(example);
  return field;
}

// Returns the fields for the limit of a budget, of which exactly one must be given.
std::vector<FieldSpec> size_fields(std::string size, std::string bits, std::string like, std::string divergence) {
  std::vector<FieldSpec> fields{{"size", FieldKind::kBytes, std::move(size)},
                                {"bits", FieldKind::kNumber, std::move(bits)},
                                {"like", FieldKind::kString, std::move(like)},
                                {"divergence", FieldKind::kNumber, std::move(divergence)}};
  const char* examples[] = {"20GiB", "4.5", "Q4_K_M", "0.01"};
  for (std::size_t i = 0; i < 4; ++i) {
    fields[i].group = "size";
    fields[i].example = examples[i];
  }
  fields[1].maximum = 64;
  return fields;
}

FieldSpec target_field() {
  FieldSpec one{"", FieldKind::kMap, "One budget for all tensors."};
  one.fields = size_fields(
      "Size of the complete output in bytes, including headers and padding.",
      "Size of the complete output in bits per weight.", "The size that this recipe gives.",
      "The smallest output whose sum is at most this; with objective `probe` the sum is the expected KL divergence.");
  FieldSpec part{"", FieldKind::kMap, "A budget for some tensors: exactly one of size, bits, like, and divergence."};
  part.fields =
      size_fields("Size of these tensors in bytes, including padding; the last budget also includes the headers.",
                  "Size of these tensors in bits per weight.", "The size that this recipe gives these tensors.",
                  "The smallest size at which their sum is at most this.");
  part.fields.insert(part.fields.begin(),
                     pattern_field("tensors",
                                   "Pattern to find in the names of this budget's tensors; the last budget has none "
                                   "and covers all other tensors and the headers.",
                                   "'ffn_.*_exps'"));
  FieldSpec parts{"", FieldKind::kList,
                  "Several budgets, such as one for main memory and one for GPU memory; a tensor belongs to the first "
                  "that matches."};
  parts.item = {std::move(part)};
  parts.minimum = 1;
  FieldSpec field{"target", FieldKind::kOneOf,
                  "Used instead of a recipe: chooses the types with the least total loss for a given size, based on "
                  "measurements. Rules in `tensors` set the types of individual tensors."};
  field.alternatives = {std::move(one), std::move(parts)};
  field.example = "{bits: 4.5}";
  return field;
}

FieldSpec objective_choice() {
  FieldSpec name{"", FieldKind::kString, "Name of a built-in objective, or path of a file."};
  name.example = "relative";
  FieldSpec map{"", FieldKind::kMap, "An objective with measured sensitivities."};
  map.fields = {{"name", FieldKind::kString, "Name of a built-in objective, or path of a file."},
                {"sensitivities", FieldKind::kPath,
                 "Output of `ggufmill probe`; or a table NAME.csv with a header line of QTYPE and tensor names, then "
                 "one line for each type."}};
  map.fields[0].required = true;
  map.fields[0].example = "probe";
  map.fields[1].example = "sensitivities.json";
  FieldSpec field{"objective", FieldKind::kOneOf,
                  "What the choice minimizes: stream (where it knows the tensors' roles, otherwise relative), "
                  "relative, probe, absolute, or a file of your own."};
  field.alternatives = {std::move(name), std::move(map)};
  field.default_text = "stream";
  field.example = "relative";
  return field;
}

FieldSpec exclude_field() {
  FieldSpec name{"", FieldKind::kString, "Name of a built-in list, or path of a file."};
  name.example = "cuda";
  FieldSpec names{"", FieldKind::kList, "Several lists."};
  names.item = {name};
  names.minimum = 1;
  std::string built_in;
  for (const BuiltInExclusion& each : built_in_exclusions()) built_in += fmt::format("{}, ", each.name);
  FieldSpec field{"exclude", FieldKind::kOneOf,
                  "Candidates to exclude, given as lists of types without fast code in a backend: " + built_in +
                      "or files of your own."};
  field.alternatives = {std::move(name), std::move(names)};
  field.example = "[cuda, cpu-x86-64]";
  return field;
}

// Removes the types of the named lists from the candidates.
Status exclude_types(const ConfigNode& node, const Types& types, TargetOptions& options) {
  const auto take = [&](const ConfigNode& name) -> Status {
    BOOST_OUTCOME_TRY(const Exclusion exclusion, find_exclusion(name.scalar, origin_of(name), types));
    if (!exclusion.file.empty()) options.inputs.push_back(exclusion.file);
    std::erase_if(options.candidates,
                  [&](const TypeInfo* type) { return std::ranges::count(exclusion.types, type) != 0; });
    return ok();
  };
  if (!node.is_list()) {
    BOOST_OUTCOME_TRY(take(node));
  }
  for (const ConfigNode& name : node.items) {
    BOOST_OUTCOME_TRY(take(name));
  }
  if (!options.candidates.empty()) return ok();
  return error_at(node, "no candidates are left", "add types to `candidates` that are not in these lists");
}

Result<Objective> read_choice(const ConfigNode* node, TargetOptions& options) {
  const ConfigNode* name = node && node->is_map() ? node->find("name") : node;
  options.objective_is_given = name != nullptr;
  BOOST_OUTCOME_TRY(Objective objective,
                    find_objective(name ? name->scalar : "stream", name ? origin_of(*name) : Origin()));
  if (!objective.file.empty()) options.inputs.push_back(objective.file);
  const ConfigNode* probes = node && node->is_map() ? node->find("sensitivities") : nullptr;
  if (objective.kind == ObjectiveKind::kProbe && !probes)
    return error_at(*node, fmt::format("objective '{}' needs sensitivities", objective.name),
                    "set them: objective: {name: probe, sensitivities: FILE}");
  if (probes) {
    options.inputs.push_back(probes->scalar);
    BOOST_OUTCOME_TRY(ProbeFile file, read_probes(probes->scalar));
    options.probes = std::move(file.probes);
  }
  return objective;
}

Result<TargetBudget> read_budget(const ConfigNode& node, const RecipeShelf& shelf) {
  TargetBudget budget;
  budget.origin = origin_of(node);
  if (const ConfigNode* tensors = node.find("tensors")) {
    BOOST_OUTCOME_TRY(budget.tensors, to_pattern(*tensors));
  }
  if (const ConfigNode* size = node.find("size")) {
    BOOST_OUTCOME_TRY(budget.bytes, to_bytes(*size));
  }
  if (const ConfigNode* bits = node.find("bits")) {
    BOOST_OUTCOME_TRY(budget.bits, to_number(*bits));
  }
  if (const ConfigNode* divergence = node.find("divergence")) {
    BOOST_OUTCOME_TRY(budget.divergence, to_number(*divergence));
  }
  if (const ConfigNode* like = node.find("like")) {
    BOOST_OUTCOME_TRY(budget.like, shelf.find(like->scalar, origin_of(*like)));
    if (budget.like->partial)
      return error_at(*like, fmt::format("recipe '{}' is only a base for other recipes", like->scalar));
  }
  return budget;
}

Result<std::vector<TargetBudget>> read_budgets(const ConfigNode& target, const RecipeShelf& shelf) {
  std::vector<TargetBudget> budgets;
  if (target.is_map()) {
    BOOST_OUTCOME_TRY(budgets.emplace_back(), read_budget(target, shelf));
    return budgets;
  }
  for (const ConfigNode& item : target.items) {
    BOOST_OUTCOME_TRY(budgets.emplace_back(), read_budget(item, shelf));
    const bool is_last = &item == &target.items.back();
    if (is_last && budgets.back().tensors)
      return error_at(item, "the last budget has a pattern, so tensors that match no pattern have no budget",
                      "end the list with a budget for all other tensors: {size: 8GiB}");
    if (!is_last && !budgets.back().tensors)
      return error_at(item, "a budget without a pattern covers all tensors, but is not the last",
                      "move it to the end, or give it a pattern: {tensors: 'ffn_.*_exps', ..}");
  }
  return budgets;
}

}  // namespace

std::vector<FieldSpec> target_fields() {
  FieldSpec candidates{"candidates", FieldKind::kList, "The types to choose from; each one is measured."};
  candidates.item = {type_field("", "A type.")};
  candidates.minimum = 1;
  candidates.default_text = fmt::format("[{}]", fmt::join(kCandidates, ", "));
  candidates.example = "[Q3_K, Q4_K, Q6_K]";
  FieldSpec measured{
      "measured", FieldKind::kPath,
      "Output of `ggufmill measure`; without it, `run` measures first and writes a file next to the output."};
  measured.example = "model.measured.json";
  const FieldSpec pattern = pattern_field("", "Pattern to find in the tensor names.", "'ffn_(gate|up)\\.'");
  FieldSpec groups{"groups", FieldKind::kList, "Patterns for tensors of a layer that must have the same type."};
  groups.item = {pattern};
  groups.example = "['ffn_(gate|up)\\.']";
  FieldSpec match = pattern;
  match.name = "match";
  match.required = true;
  FieldSpec bound{"", FieldKind::kMap, "Tensors, and the range of their types by bits per weight."};
  bound.fields = {std::move(match), type_field("at_least", "The type with the fewest bits."),
                  type_field("at_most", "The type with the most bits.")};
  FieldSpec bounds{"bounds", FieldKind::kList, "Bounds on the choice."};
  bounds.item = {std::move(bound)};
  bounds.example = "[{match: attn_v, at_least: Q4_K}]";
  return {target_field(),     std::move(candidates), exclude_field(),  std::move(measured),
          objective_choice(), std::move(groups),     std::move(bounds)};
}

Status refuse_target_fields(const ConfigNode& quantize) {
  for (const std::string_view name : kFields)
    if (const ConfigNode* node = quantize.find(name))
      return error_at(*node, fmt::format("'{}' needs a target, which is missing", name),
                      "add one: target: {bits: 4.5}");
  return ok();
}

Result<TargetOptions> read_target(const ConfigNode& quantize, const RecipeShelf& shelf) {
  TargetOptions options;
  const ConfigNode& target = *quantize.find("target");
  options.origin = origin_of(target);
  BOOST_OUTCOME_TRY(options.budgets, read_budgets(target, shelf));
  if (const ConfigNode* candidates = quantize.find("candidates"))
    for (const ConfigNode& item : candidates->items) options.candidates.push_back(shelf.types().find(item.scalar));
  else
    for (const std::string_view name : kCandidates) options.candidates.push_back(shelf.types().find(name));
  if (const ConfigNode* exclude = quantize.find("exclude")) {
    BOOST_OUTCOME_TRY(exclude_types(*exclude, shelf.types(), options));
  }
  BOOST_OUTCOME_TRY(options.objective, read_choice(quantize.find("objective"), options));
  if (const ConfigNode* groups = quantize.find("groups"))
    for (const ConfigNode& item : groups->items) {
      BOOST_OUTCOME_TRY(options.groups.emplace_back(), to_pattern(item));
    }
  if (const ConfigNode* bounds = quantize.find("bounds"))
    for (const ConfigNode& item : bounds->items) {
      const auto type = [&](const char* name) {
        const ConfigNode* node = item.find(name);
        return node ? shelf.types().find(node->scalar) : nullptr;
      };
      BOOST_OUTCOME_TRY(Pattern match, to_pattern(*item.find("match")));
      options.bounds.push_back({std::move(match), type("at_least"), type("at_most")});
    }
  if (const ConfigNode* measured = quantize.find("measured")) {
    options.measured = measured->scalar;
    options.inputs.push_back(measured->scalar);
    BOOST_OUTCOME_TRY(Measurement measurement, read_measurement(measured->scalar));
    options.measurement = std::make_shared<const Measurement>(std::move(measurement));
  }
  return options;
}

}  // namespace ggufmill
