// The options of the stage `quantize`.

#include <fmt/format.h>

#include "pipeline/core/type_family.h"
#include "stages/quantize/encoder_fields.h"
#include "stages/quantize/quantize_stage.h"

namespace ggufmill {
namespace {

// A rule of `tensors`. Without `fallback`, that of the stage applies.
struct WrittenRule {
  TensorRule rule{};
  std::optional<bool> fallback{};
};

// The options of the stage as written.
struct QuantizeSettings {
  std::optional<Recipe> recipe{};
  const TypeInfo* type = nullptr;
  std::vector<WrittenRule> tensors{};
  std::vector<Rule> rules{};
  bool warns_of_unused_rules = false;
  bool pure = false;
  bool requantize = true;
  std::optional<bool> order_by_layer{};
  std::optional<bool> fallback{};
  std::optional<Encoder> encoder{};
  EncodersByType encoders{};
  std::optional<TargetOptions> target{};
  std::optional<Repacking> repack{};
  Origin origin{}, recipe_origin{};  // of the stage; of `recipe` or `type`
  Origin pure_origin{}, fallback_origin{}, encoder_origin{}, encoders_origin{};
};

// Returns what is known of the encoders of kernel modules, as the end of a sentence.
std::string encoders_of_modules() {
  std::string text;
  for (const TypeFamily& family : type_families())
    if (!family.encoder.empty())
      text += fmt::format("{} the module `{}` has `{}`, which quantizes as {} does and is the default of its recipes",
                          text.empty() ? ":" : ",", family.module, family.encoder, family.project);
  return text;
}

Form<bool> misfit_form() { return word<bool>({{"refuse", false}, {"fallback", true}}); }

Form<Repacking> repacking_form() {
  const auto rows = word<bool>({{"interleaved", true}, {"plain", false}});
  auto map = map_of<Repacking>({
                                   field("rows", &Repacking::interleaved, rows, "The new arrangement of rows.")
                                       .required()
                                       .example("interleaved"),
                                   field("match", &Repacking::match, "Pattern to find in the names of the tensors.")
                                       .example("'ffn_.*_exps'")
                                       .at(&Repacking::origin),
                               })
                 .doc("An arrangement of rows for some tensors.");
  return either<Repacking>(shorthand(&Repacking::interleaved, rows), std::move(map));
}

Form<std::vector<WrittenRule>> tensors_form(const Types& types) {
  using Rule = TensorRule;
  Fields<Rule> fields{
      field("match", &Rule::match, "Pattern to find anywhere in the tensor name (Perl syntax).")
          .required()
          .example("'blk\\.\\d+\\.ffn_down'")
          .at(&Rule::origin),
      field("type", &Rule::type, tensor_type(types, {"keep"}), "The new type, or `keep` for the current one.")
          .required()
          .example("Q5_K"),
      field("optional", &Rule::optional, "Whether the rule may match no tensor."),
      field("encoder", &Rule::encoder, encoder_form(types),
            "Overrides the stage's `encoder` and `encoders` for this rule.")
          .example("search")
          .at(&Rule::encoder_origin),
  };
  return list_of(map_of<WrittenRule>(fields_within(&WrittenRule::rule, fields) +
                                     Fields<WrittenRule>{field("misfit", &WrittenRule::fallback, misfit_form(),
                                                               "Overrides the stage's `misfit` for this rule.")})
                     .doc("A rule; the first match for a tensor decides."));
}

Fields<QuantizeSettings> settings_fields(const RecipeCatalog& catalog) {
  using Settings = QuantizeSettings;
  const Types& types = catalog.types();
  return {
      field("recipe", &Settings::recipe, recipe_name(catalog), "Name of a built-in recipe, or path of a recipe file.")
          .example("Q4_K_M")
          .at(&Settings::recipe_origin),
      field("type", &Settings::type, tensor_type(types), "One type for all tensors of two or more dimensions.")
          .example("Q4_K")
          .at(&Settings::recipe_origin),
      field("tensors", &Settings::tensors, tensors_form(types),
            "Rules for individual tensors; a rule without a match is an error."),
      field("unused_rules", &Settings::warns_of_unused_rules, word<bool>({{"error", false}, {"warn", true}}),
            "What happens if no tensor is left for a rule in `tensors`.")
          .shown_default("error"),
      field("rules", &Settings::rules, additional_rules_form(types),
            "Recipe rules that take precedence over the recipe's own."),
      field("pure", &Settings::pure, "Whether to use the recipe's type for all tensors and ignore its rules.")
          .at(&Settings::pure_origin),
      field("requantize", &Settings::requantize, "Whether quantized tensors may be requantized."),
      field("order", &Settings::order_by_layer, order_form(),
            "Tensor order: layer by layer, sorted by name, as written by llama-quantize; or as in the source, which is "
            "the default of recipes of ik_llama.cpp.")
          .shown_default("layers"),
      field(
          "misfit", &Settings::fallback, misfit_form(),
          "What happens to a type named here where the row length is not a multiple of its block size: it is refused, "
          "or replaced according to the recipe's `fallback`. A recipe's own types always fall back.")
          .shown_default("refuse")
          .at(&Settings::fallback_origin),
      field("repack", &Settings::repack, repacking_form(),
            "Rearranges rows without changing values: `interleaved` gives every type its variant for ik_llama.cpp, "
            "`_R4` or `_R8`, if there is one and the number of rows is a multiple; `plain` separates the rows again.")
          .example("interleaved"),
      field("encoder", &Settings::encoder, encoder_form(types),
            "How values are encoded in their types: as llama-quantize does, or with better scales, minimums and levels "
            "at the same size. Kernel modules can add encoders" +
                encoders_of_modules() +
                ". Types without the encoder keep the reference's bytes, which `ggufmill plan` shows.")
          .shown_default("reference")
          .example("{search: {effort: 2}}")
          .at(&Settings::encoder_origin),
      field("encoders", &Settings::encoders, encoders_form(types),
            "Encoders of the tensors of these types. They take precedence over `encoder` and over those of the recipe; "
            "a rule's `encoder` takes precedence over them.")
          .example("{Q4_K: search, Q3_K: {search: {effort: 3}}}")
          .at(&Settings::encoders_origin),
  };
}

// Returns the rules with what they take over from the stage.
std::vector<TensorRule> tensor_rules(std::vector<WrittenRule> written, bool fallback) {
  std::vector<TensorRule> rules;
  for (WrittenRule& each : written) {
    each.rule.text = fmt::format("tensors[{}]: {}", rules.size(), each.rule.match.text());
    each.rule.fallback = each.fallback.value_or(fallback);
    each.rule.misfit_is_given = each.fallback.has_value();
    rules.push_back(std::move(each.rule));
  }
  return rules;
}

// Refuses encoders that are named together with a type that does not support them. A type that a recipe gives keeps the
// reference's bytes instead.
Status check_encoders(const QuantizeSettings& settings) {
  Diagnostics errors;
  const auto check = [&](const Encoder& encoder, const TypeInfo& type, const Origin& origin) {
    if (const Status checked = check_encoder(encoder, type, origin); !checked) errors.add(checked.error());
  };
  if (settings.type && settings.encoder) check(*settings.encoder, *settings.type, settings.encoder_origin);
  for (const auto& [rule, fallback] : settings.tensors) {
    if (!rule.encoder) continue;
    if (rule.type)
      check(*rule.encoder, *rule.type, rule.encoder_origin);
    else
      errors.add(error_at(rule.encoder_origin, "tensors that keep their type are not encoded",
                          "remove `encoder`, or name a type instead of `keep`"));
  }
  if (!errors.empty()) return errors.together();
  return ok();
}

// Refuses settings without effect: those of a recipe or a named type where neither is given.
Status check_effect(const QuantizeSettings& settings) {
  if (settings.recipe || settings.type) return ok();
  Diagnostics errors;
  if (settings.pure)
    errors.add(error_at(settings.pure_origin,
                        "`pure` uses the type of a recipe for all tensors, but there is no recipe",
                        "remove it, or give a recipe or a type: {recipe: Q4_K_M, pure: true}"));
  const bool names_types = !settings.tensors.empty() || !settings.rules.empty();
  const auto refuse = [&](bool is_given, const Origin& origin, std::string what) {
    if (is_given && !names_types)
      errors.add(error_at(origin, std::move(what), "remove it, or give types: tensors: [{match: .., type: ..}]"));
  };
  refuse(settings.fallback.has_value(), settings.fallback_origin,
         "`misfit` is for types that are named, but no recipe, type or rule names any");
  if (!settings.target) {
    refuse(settings.encoder.has_value(), settings.encoder_origin,
           "`encoder` has no effect, because `repack` alone converts no tensor");
    refuse(!settings.encoders.empty(), settings.encoders_origin,
           "`encoders` has no effect, because `repack` alone converts no tensor");
  }
  if (!errors.empty()) return errors.together();
  return ok();
}

Result<QuantizeStageOptions> options_of(QuantizeSettings settings, const RecipeCatalog& catalog) {
  const bool by_recipe = settings.recipe.has_value(), by_type = settings.type, by_target = settings.target.has_value();
  const bool only_repacks = settings.repack && !by_recipe && !by_type && !by_target;
  if (by_recipe + by_type + by_target != 1 && !only_repacks)
    return error_at(settings.origin,
                    by_recipe && by_type                ? "both a recipe and a type are given"
                    : by_recipe || by_type || by_target ? "a target is given together with a recipe or a type"
                                                        : "neither a recipe nor a type is given",
                    "give one of them: {recipe: Q4_K_M}, {type: Q4_K}, {target: {bits: 4.5}}, or only `repack`");
  QuantizeStageOptions options;
  BOOST_OUTCOME_TRY(check_encoders(settings));
  BOOST_OUTCOME_TRY(check_effect(settings));
  options.origin = settings.origin;
  options.recipe_origin = by_target ? settings.target->origin : settings.recipe_origin;
  BOOST_OUTCOME_TRY(options.recipe, by_recipe ? Result<Recipe>(*std::move(settings.recipe))
                                    : by_type ? recipe_of_type(*settings.type, catalog)
                                              : recipe_of_target(catalog));
  if (only_repacks) options.recipe.by_layer = false, options.recipe.keys_in_place = true;
  add_rules(std::move(settings.rules), "rules", options.recipe);
  for (const auto& [type, encoder] : settings.encoders) options.recipe.encoders[type] = encoder;
  options.target = std::move(settings.target);
  if (options.target) options.target->encoders = options.recipe.encoders;
  options.fallback = settings.fallback.value_or(false);
  options.misfit_is_given = settings.fallback.has_value();
  options.rules = tensor_rules(std::move(settings.tensors), options.fallback);
  options.encoder = settings.encoder;
  options.encoders = std::move(settings.encoders);
  options.pure = settings.pure;
  options.warns_of_unused_rules = settings.warns_of_unused_rules;
  options.requantize = settings.requantize;
  options.order_by_layer = settings.order_by_layer;
  options.repack = std::move(settings.repack);
  return options;
}

// Returns the options of a stage with only a name: of a recipe, or else of a type.
Result<QuantizeStageOptions> options_of_name(const std::string& name, const ConfigNode& node,
                                             const RecipeCatalog& catalog) {
  QuantizeStageOptions options;
  options.origin = options.recipe_origin = origin_of(node);
  auto recipe = catalog.find_complete(name, options.origin);
  if (const TypeInfo* type = catalog.types().find_choice(name); type && !recipe)
    recipe = recipe_of_type(*type, catalog);
  BOOST_OUTCOME_TRY(options.recipe, std::move(recipe));
  return options;
}

Form<QuantizeStageOptions> quantize_form(const RecipeCatalog& catalog) {
  using Options = QuantizeStageOptions;
  auto name = converted<Options>(
      text().doc("Name of a built-in recipe, path of a recipe file, or a type.").example("Q4_K_M"),
      [catalog](const std::string& given, const ConfigNode& node) { return options_of_name(given, node, catalog); });
  auto map =
      converted<Options>(with_fields_of(map_of<QuantizeSettings>(settings_fields(catalog)), &QuantizeSettings::target,
                                        target_form(catalog))
                             .at(&QuantizeSettings::origin)
                             .doc("A recipe or a type, with additional rules."),
                         [catalog](QuantizeSettings settings) { return options_of(std::move(settings), catalog); });
  return either<Options>(std::move(name), std::move(map))
      .doc("Chooses the type of each tensor.")
      .example("{recipe: Q3_K_M, tensors: [{match: 'ffn_down', type: Q5_K}]}");
}

}  // namespace

StageSpec quantize_stage(Types types) {
  const RecipeCatalog catalog{std::move(types)};
  return stage_spec("quantize", quantize_form(catalog), [catalog](QuantizeStageOptions options) {
    return make_quantize_stage(std::move(options), catalog);
  });
}

}  // namespace ggufmill
