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
  FieldSpec one{"", FieldKind::kMap, "One budget for all."};
  one.fields = size_fields("Bytes of the whole output, headers and padding included.", "The same for each weight.",
                           "As many bytes as with this recipe.",
                           "The smallest output whose sum is at most this; with objective `probe` the sum is the KL "
                           "divergence to expect.");
  FieldSpec part{"", FieldKind::kMap, "A budget of some tensors: exactly one of size, bits, like and divergence."};
  part.fields = size_fields("Bytes of these tensors with their padding; of the last budget with the headers, too.",
                            "The same for each of their weights.", "As many bytes as they have with this recipe.",
                            "The fewest bytes with which their sum is at most this.");
  part.fields.insert(part.fields.begin(), pattern_field("tensors",
                                                        "For tensors whose name this is found in; the last budget has "
                                                        "none, and is for all others and the headers.",
                                                        "'ffn_.*_exps'"));
  FieldSpec parts{"", FieldKind::kList,
                  "Several, such as one for main memory and one for a GPU's: a tensor counts for the first that is for "
                  "it."};
  parts.item = {std::move(part)};
  parts.minimum = 1;
  FieldSpec field{"target", FieldKind::kOneOf,
                  "In place of a recipe: the types that together lose least in so many bytes, by what was measured. "
                  "Rules in `tensors` give single tensors their type."};
  field.alternatives = {std::move(one), std::move(parts)};
  field.example = "{bits: 4.5}";
  return field;
}

FieldSpec objective_choice() {
  FieldSpec name{"", FieldKind::kString, "A built-in objective, or the path of a file."};
  name.example = "relative";
  FieldSpec map{"", FieldKind::kMap, "With measured sensitivities."};
  map.fields = {{"name", FieldKind::kString, "A built-in objective, or the path of a file."},
                {"sensitivities", FieldKind::kPath,
                 "What `ggufmill probe` measured; or a table NAME.csv: a line QTYPE and names of tensors, then one for "
                 "each type."}};
  map.fields[0].required = true;
  map.fields[0].example = "probe";
  map.fields[1].example = "sensitivities.json";
  FieldSpec field{
      "objective", FieldKind::kOneOf,
      "What the choice is to make small: stream (where it knows the tensors' roles, else relative), relative, "
      "probe, absolute, or a file of your own."};
  field.alternatives = {std::move(name), std::move(map)};
  field.default_text = "stream";
  field.example = "relative";
  return field;
}

FieldSpec exclude_field() {
  FieldSpec name{"", FieldKind::kString, "A built-in list, or the path of a file."};
  name.example = "cuda";
  FieldSpec names{"", FieldKind::kList, "Several lists."};
  names.item = {name};
  names.minimum = 1;
  std::string built_in;
  for (const BuiltInExclusion& each : built_in_exclusions()) built_in += fmt::format("{}, ", each.name);
  FieldSpec field{"exclude", FieldKind::kOneOf,
                  "Candidates that are left out, by lists of what a backend has no fast code for: " + built_in +
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
  return error_at(node, "no candidate is left", "add types to `candidates` that these lists do not have");
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
                    "objective: {name: probe, sensitivities: FILE}");
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
      return error_at(*like, fmt::format("recipe '{}' is only a base for others", like->scalar));
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
      return error_at(item, "the last budget has a pattern, so that other tensors have none",
                      "end the list with one for all others: {size: 8GiB}");
    if (!is_last && !budgets.back().tensors)
      return error_at(item, "a budget without a pattern takes all tensors, and others follow",
                      "move it to the end, or give it a pattern: {tensors: 'ffn_.*_exps', ..}");
  }
  return budgets;
}

}  // namespace

std::vector<FieldSpec> target_fields() {
  FieldSpec candidates{"candidates", FieldKind::kList, "The types to choose from; each is measured."};
  candidates.item = {type_field("", "A type.")};
  candidates.minimum = 1;
  candidates.default_text = fmt::format("[{}]", fmt::join(kCandidates, ", "));
  candidates.example = "[Q3_K, Q4_K, Q6_K]";
  FieldSpec measured{"measured", FieldKind::kPath,
                     "What `ggufmill measure` wrote; without it `run` measures first, into a file beside the output."};
  measured.example = "model.measured.json";
  const FieldSpec pattern = pattern_field("", "Found in the tensors' names.", "'ffn_(gate|up)\\.'");
  FieldSpec groups{"groups", FieldKind::kList, "Tensors of one layer that match one of these have one type."};
  groups.item = {pattern};
  groups.example = "['ffn_(gate|up)\\.']";
  FieldSpec match = pattern;
  match.name = "match";
  match.required = true;
  FieldSpec bound{"", FieldKind::kMap, "Tensors, and the types between which theirs is, by bits for a weight."};
  bound.fields = {std::move(match), type_field("at_least", "No coarser than this."),
                  type_field("at_most", "No finer than this.")};
  FieldSpec bounds{"bounds", FieldKind::kList, "Bounds for the choice."};
  bounds.item = {std::move(bound)};
  bounds.example = "[{match: attn_v, at_least: Q4_K}]";
  return {target_field(),     std::move(candidates), exclude_field(),  std::move(measured),
          objective_choice(), std::move(groups),     std::move(bounds)};
}

Status refuse_target_fields(const ConfigNode& quantize) {
  for (const std::string_view name : kFields)
    if (const ConfigNode* node = quantize.find(name))
      return error_at(*node, fmt::format("'{}' is for a target, and there is none", name), "target: {bits: 4.5}");
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
