// Fields of a target and their parsing.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/core/type_family.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/exclusion.h"
#include "stages/quantize/target.h"

namespace ggufmill {
namespace {

// Returns ", such as `NAME`,", or nothing in a build that knows no kernel module by name.
std::string example_of_module() {
  return type_families().empty() ? "" : fmt::format(", such as `{}`,", type_families().front().module);
}

std::vector<std::string_view> names_of(const std::vector<const TypeInfo*>& types) {
  std::vector<std::string_view> names;
  for (const TypeInfo* type : types) names.push_back(type->name);
  return names;
}

constexpr std::string_view kTarget = "target", kDefaultObjective = "stream";

// An objective as a user names it.
struct ObjectiveChoice {
  Objective objective{};
  std::optional<std::string> sensitivities{};
  Origin origin{}, sensitivities_origin{};
};

// A type as a user names it, or all types of a kernel module.
struct NamedCandidates {
  std::vector<const TypeInfo*> types{};
  bool is_module = false;
};

// The options of a target as written, before files are read.
struct TargetSettings {
  std::vector<TargetBudget> budgets{};
  std::vector<NamedCandidates> candidates{};
  std::vector<Exclusion> exclude{};
  std::optional<std::string> measured{};
  RowSample sample{};
  std::optional<ObjectiveChoice> objective{};
  std::vector<TypeGroup> groups{};
  std::vector<TypeBound> bounds{};
  Origin origin{}, measured_origin{}, exclude_origin{};
};

// Descriptions of the four limits of a budget, of which exactly one must be given.
struct LimitDocs {
  const char *size, *bits, *like, *divergence;
};

Fields<TargetBudget> limit_fields(const RecipeCatalog& catalog, const LimitDocs& docs) {
  using Budget = TargetBudget;
  const std::string group = "size";
  return {
      field("size", &Budget::bytes, bytes(), docs.size).group(group).example("20GiB"),
      field("bits", &Budget::bits, docs.bits).at_most(64).group(group).example("4.5"),
      field("like", &Budget::like, recipe_name(catalog), docs.like).group(group).example("Q4_K_M"),
      field("divergence", &Budget::divergence, docs.divergence).group(group).example("0.01"),
  };
}

Result<std::vector<TargetBudget>> check_budgets(std::vector<TargetBudget> budgets) {
  for (const TargetBudget& budget : budgets) {
    const bool is_last = &budget == &budgets.back();
    if (is_last && budget.tensors)
      return error_at(budget.origin, "the last budget has a pattern, so tensors that match no pattern have no budget",
                      "end the list with a budget for all other tensors: {size: 8GiB}");
    if (!is_last && !budget.tensors)
      return error_at(budget.origin, "a budget without a pattern covers all tensors, but is not the last",
                      "move it to the end, or give it a pattern: {tensors: 'ffn_.*_exps', ..}");
  }
  return budgets;
}

Form<std::vector<TargetBudget>> budgets_form(const RecipeCatalog& catalog) {
  using Budgets = std::vector<TargetBudget>;
  const LimitDocs of_all{
      "Size of the complete output in bytes, including headers and padding.",
      "Size of the complete output in bits per weight.", "The size that this recipe gives.",
      "The smallest output whose sum is at most this; with objective `probe` the sum is the expected KL divergence."};
  const LimitDocs of_some{
      "Size of these tensors in bytes, including padding; the last budget also includes the headers.",
      "Size of these tensors in bits per weight.", "The size that this recipe gives these tensors.",
      "The smallest size at which their sum is at most this."};
  const auto all =
      map_of<TargetBudget>(limit_fields(catalog, of_all)).at(&TargetBudget::origin).doc("One budget for all tensors.");
  const auto some =
      map_of<TargetBudget>(
          Fields<TargetBudget>{field("tensors", &TargetBudget::tensors,
                                     "Pattern to find in the names of this budget's tensors; the last budget has none "
                                     "and covers all other tensors and the headers.")
                                   .example("'ffn_.*_exps'")} +
          limit_fields(catalog, of_some))
          .at(&TargetBudget::origin)
          .doc("A budget for some tensors: exactly one of size, bits, like, and divergence.");
  return either<Budgets>(
      converted<Budgets>(all, [](TargetBudget budget) { return Budgets{std::move(budget)}; }),
      converted<Budgets>(
          list_of(some).at_least(1).doc("Several budgets, such as one for main memory and one for GPU memory; a tensor "
                                        "belongs to the first that matches."),
          check_budgets));
}

Form<Objective> objective_name() {
  return converted<Objective>(
      text().doc("Name of a built-in objective, or path of a file."),
      [](const std::string& name, const ConfigNode& node) { return find_objective(name, origin_of(node)); });
}

Form<ObjectiveChoice> objective_choice() {
  const Form<Objective> name = objective_name();
  const auto map = map_of<ObjectiveChoice>(
                       {field("name", &ObjectiveChoice::objective, name, name.spec.doc).required().example("probe"),
                        field("sensitivities", &ObjectiveChoice::sensitivities, path(),
                              "Output of `ggufmill probe`; or a table NAME.csv with a header line of QTYPE and tensor "
                              "names, then one line for each type.")
                            .example("sensitivities.json")
                            .at(&ObjectiveChoice::sensitivities_origin)})
                       .doc("An objective with measured sensitivities.");
  return either<ObjectiveChoice>(shorthand(&ObjectiveChoice::objective, name).example("relative"), map)
      .at(&ObjectiveChoice::origin);
}

Form<std::vector<Exclusion>> exclusions_form(const Types& types) {
  const auto find = [types](const std::string& name, const ConfigNode& node) {
    return find_exclusion(name, origin_of(node), types);
  };
  const auto name = text().doc("Name of a built-in list, or path of a file.").example("cuda");
  return one_or_more(converted<Exclusion>(name, find), "Several lists.", 1);
}

Form<NamedCandidates> candidates_form(const Types& types) {
  const auto convert = [types](const TypeInfo* type, const ConfigNode& node) -> Result<NamedCandidates> {
    if (type && type->ungrouped)
      return error_at(node, fmt::format("{} has interleaved rows, which targets do not choose", type->name),
                      fmt::format("choose among plain types, {} for example", type->ungrouped->name));
    if (type && type->plain)
      return error_at(
          node, fmt::format("{} has the values of {}, with interleaved rows", type->name, type->plain->name),
          fmt::format("choose among plain types, {} for example, and add `repack: interleaved`", type->plain->name));
    if (type) return NamedCandidates{{type}, false};
    NamedCandidates candidates{{}, true};
    for (const TypeInfo* each : types.all())
      if (types.module_of(*each) == node.scalar) candidates.types.push_back(each);
    return candidates;
  };
  return converted<NamedCandidates>(
      tensor_type(types, types.modules()).doc("A type, or a kernel module.").example("Q4_K"), convert);
}

Form<TypeGroup> group_form() {
  return converted<TypeGroup>(regex().doc("Pattern to find in the tensor names.").example("'ffn_(gate|up)\\.'"),
                              [](Pattern match, const ConfigNode& node) {
                                return TypeGroup{std::move(match), origin_of(node)};
                              });
}

Result<TypeBound> check_bound(TypeBound bound, const ConfigNode& node) {
  const TypeInfo *least = bound.at_least, *most = bound.at_most;
  if (!least && !most)
    return error_at(node, fmt::format("the bound on '{}' has no type, so it limits nothing", bound.match.text()),
                    "add `at_least`, `at_most`, or both: {match: attn_v, at_least: Q4_K}");
  if (least && most && least->bits_per_weight() > most->bits_per_weight())
    return error_at(
        node,
        fmt::format("no type is within the bound on '{}': at_least {} has {:.4g} bits per weight, but "
                    "at_most {} only {:.4g}",
                    bound.match.text(), least->name, least->bits_per_weight(), most->name, most->bits_per_weight()),
        "exchange the two types, or remove one");
  return bound;
}

Form<TypeBound> bound_form(const Types& types) {
  const auto type = [&] { return tensor_type(types); };
  auto map = map_of<TypeBound>(
                 {
                     field("match", &TypeBound::match, "Pattern to find in the tensor names.")
                         .required()
                         .example("'ffn_(gate|up)\\.'")
                         .at(&TypeBound::origin),
                     field("at_least", &TypeBound::at_least, type(), "The type with the fewest bits.").example("Q4_K"),
                     field("at_most", &TypeBound::at_most, type(), "The type with the most bits.").example("Q4_K"),
                 })
                 .doc("Tensors, and the range of their types by bits per weight.");
  return converted<TypeBound>(std::move(map), check_bound);
}

Fields<TargetSettings> target_settings_fields(const RecipeCatalog& catalog) {
  using Settings = TargetSettings;
  std::string built_in;
  for (const BuiltInExclusion& each : built_in_exclusions()) built_in += fmt::format("{}, ", each.name);
  return {
      field(std::string(kTarget), &Settings::budgets, budgets_form(catalog),
            "Used instead of a recipe, in an output and not in the shared `stages`: chooses the types with the least "
            "total loss for a given size, based on measurements. Rules in `tensors` set the types of individual "
            "tensors.")
          .example("{bits: 4.5}")
          .at(&Settings::origin),
      field("candidates", &Settings::candidates, list_of(candidates_form(catalog.types())).at_least(1),
            "The types to choose from; each one is measured. The name of a kernel module" + example_of_module() +
                " stands for its types; modules alone add theirs to the default, which for rows of no multiple of 256 "
                "values is [" +
                fmt::format("{}].", fmt::join(names_of(narrow_candidates()), ", ")))
          .shown_default(fmt::format("[{}]", fmt::join(names_of(wide_candidates()), ", ")))
          .example("[Q3_K, Q4_K, Q6_K]"),
      field("exclude", &Settings::exclude, exclusions_form(catalog.types()),
            "Candidates to exclude, given as lists of types, such as those without fast code in a backend: " +
                built_in + "or files of your own.")
          .example("[cuda, cpu-x86-64]")
          .at(&Settings::exclude_origin),
      field("measured", &Settings::measured, path(),
            "Output of `ggufmill measure`; without it, `run` measures first what the cache of measurements does not "
            "contain.")
          .example("model.measured.json")
          .at(&Settings::measured_origin),
      field(
          "sample", &Settings::sample, sample_form(),
          "Rows that are measured: one of N (at least 64 of a tensor), evenly spread, the same for every candidate; or "
          "all. A measurement of all rows serves every sample.")
          .example("all"),
      field("objective", &Settings::objective, objective_choice(),
            "What the choice minimizes: stream (where it knows the tensors' roles, otherwise relative), relative, "
            "probe, absolute, or a file of your own.")
          .shown_default(std::string(kDefaultObjective))
          .example("relative"),
      field("groups", &Settings::groups, list_of(group_form()),
            "Patterns for tensors of a layer that must have the same type; patterns that share a tensor are joined.")
          .example("['ffn_(gate|up)\\.']"),
      field("bounds", &Settings::bounds, list_of(bound_form(catalog.types())), "Bounds on the choice.")
          .example("[{match: attn_v, at_least: Q4_K}]"),
  };
}

// Removes the types of the named lists from the candidates.
Status exclude_types(const TargetSettings& settings, TargetOptions& options) {
  for (const Exclusion& exclusion : settings.exclude) {
    if (!exclusion.file.empty()) options.inputs.push_back(exclusion.file);
    for (auto* const candidates : {&options.candidates, &options.narrow_candidates})
      std::erase_if(*candidates, [&](const TypeInfo* type) { return std::ranges::count(exclusion.types, type) != 0; });
  }
  if (!options.candidates.empty()) return ok();
  return error_at(settings.exclude_origin, "no candidates are left",
                  "add types to `candidates` that are not in these lists");
}

Status take_objective(const TargetSettings& settings, TargetOptions& options) {
  options.objective_is_given = settings.objective.has_value();
  if (!settings.objective) {
    BOOST_OUTCOME_TRY(options.objective, find_objective(std::string(kDefaultObjective), {}));
    return ok();
  }
  const ObjectiveChoice& choice = *settings.objective;
  options.objective = choice.objective;
  if (!choice.objective.file.empty()) options.inputs.push_back(choice.objective.file);
  if (choice.objective.kind == ObjectiveKind::kProbe && !choice.sensitivities)
    return error_at(choice.origin, fmt::format("objective '{}' needs sensitivities", choice.objective.name),
                    "set them: objective: {name: probe, sensitivities: FILE}");
  if (!choice.sensitivities) return ok();
  if (choice.objective.kind != ObjectiveKind::kProbe)
    return error_at(choice.sensitivities_origin,
                    fmt::format("objective '{}' determines sensitivities itself, so those of a file have no effect",
                                choice.objective.name),
                    "remove them, or use them with objective `probe`: {name: probe, sensitivities: FILE}");
  options.sensitivities = *choice.sensitivities;
  options.inputs.push_back(*choice.sensitivities);
  auto file = read_probes(options.sensitivities);
  if (file)
    options.probes = std::move(file).value().probes;
  else
    options.probes_fault = std::make_shared<const Error>(
        named_at(choice.origin, file.error(), "`ggufmill probe` writes it; or check the path"));
  return ok();
}

Result<TargetOptions> options_of(TargetSettings settings) {
  TargetOptions options;
  options.origin = settings.origin;
  options.budgets = std::move(settings.budgets);
  if (std::ranges::all_of(settings.candidates, &NamedCandidates::is_module)) {
    options.candidates = wide_candidates();
    options.narrow_candidates = narrow_candidates();
  }
  for (const NamedCandidates& named : settings.candidates)
    for (const TypeInfo* type : named.types) {
      if (std::ranges::count(options.candidates, type) != 0) continue;
      options.candidates.push_back(type);
      if (!options.narrow_candidates.empty()) options.narrow_candidates.push_back(type);
    }
  BOOST_OUTCOME_TRY(exclude_types(settings, options));
  BOOST_OUTCOME_TRY(take_objective(settings, options));
  options.groups = std::move(settings.groups);
  options.bounds = std::move(settings.bounds);
  options.sample = settings.sample;
  if (!settings.measured) return options;
  options.measured = *settings.measured;
  options.inputs.push_back(options.measured);
  if (auto measurement = read_measurement(options.measured))
    options.measurement = std::make_shared<const Measurement>(std::move(measurement).value());
  else
    options.measured_fault = std::make_shared<const Error>(
        named_at(settings.measured_origin, measurement.error(),
                 fmt::format("write it with `ggufmill measure` and --output {} --overwrite; without `measured`, `run` "
                             "measures first",
                             options.measured)));
  return options;
}

}  // namespace

Form<std::optional<TargetOptions>> target_form(const RecipeCatalog& catalog) {
  using Target = std::optional<TargetOptions>;
  const Fields<TargetSettings> fields = target_settings_fields(catalog);
  const auto convert = [fields, types = catalog.types()](TargetSettings settings,
                                                         const ConfigNode& quantize) -> Result<Target> {
    if (!settings.budgets.empty()) {
      BOOST_OUTCOME_TRY(TargetOptions options, options_of(std::move(settings)));
      return Target(std::move(options));
    }
    for (const AnyForm& field : fields.list)
      if (const ConfigNode* node = quantize.find(field.spec.name))
        return error_at(*node, fmt::format("'{}' needs a target, which is missing", field.spec.name),
                        "add one: target: {bits: 4.5}");
    return Target();
  };
  return converted<Target>(map_of<TargetSettings>(fields), convert);
}

}  // namespace ggufmill
