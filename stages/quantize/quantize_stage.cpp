#include "stages/quantize/quantize_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/core/text.h"
#include "stages/quantize/facts.h"
#include "stages/quantize/misfits.h"

namespace ggufmill {
namespace {

constexpr std::uint32_t kGuessed = 1024;
constexpr std::uint32_t kMostlyNvfp4 = 39;  // has a number, but no recipe
constexpr std::uint32_t kAllF32 = 0;        // used for types without a number

std::uint32_t number_of(const TypeInfo& type, const RecipeShelf& shelf) {
  if (type.name == "NVFP4") return kMostlyNvfp4;
  return shelf.file_type_of(std::string(type.name)).value_or(kAllF32);
}

// Guesses general.file_type like llama.cpp does for files without it (src/llama-model-loader.cpp, MIT): the number of
// the most frequent type; among equally frequent types, the one that reaches that count first, layer by layer. A bit
// marks the number as a guess.
std::uint32_t guessed_file_type(const std::vector<Tensor>& tensors, const RecipeShelf& shelf) {
  std::vector<const Tensor*> by_layer;
  by_layer.reserve(tensors.size());
  for (const Tensor& tensor : tensors) by_layer.push_back(&tensor);
  std::stable_sort(by_layer.begin(), by_layer.end(),
                   [](const Tensor* a, const Tensor* b) { return is_before(*a, *b); });
  std::map<const TypeInfo*, std::size_t> counts;
  const TypeInfo* most = &type_named("F32");
  std::size_t most_count = 0;
  for (const Tensor* tensor : by_layer)
    if (const std::size_t count = ++counts[tensor->type]; count > most_count) most = tensor->type, most_count = count;
  return number_of(*most, shelf) | kGuessed;
}

bool exempt(const Recipe& recipe, const Tensor& tensor) {
  const TensorClass tensor_class = class_of(tensor.name);
  return std::any_of(recipe.importance_exempt.begin(), recipe.importance_exempt.end(),
                     [&](const ClassSet& set) { return set.contains(tensor_class, false); });
}

bool needs(const Recipe& recipe, const Tensor& tensor) {
  const auto& types = recipe.needs_importance;
  return tensor.converted() && std::find(types.begin(), types.end(), tensor.type) != types.end() &&
         !exempt(recipe, tensor);
}

// Returns one problem for all tensors with types that need importance. `what` and `help` give the cause and are the
// same for every output.
Error no_importance(const std::vector<const Tensor*>& tensors, bool is_given) {
  std::map<std::string_view, std::size_t> counts;
  for (const Tensor* tensor : tensors) ++counts[tensor->type->name];
  std::string types;
  for (const auto& [type, count] : counts) types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
  Error error = is_given
                    ? usage_error("the importance file has no data for some tensors whose types need it",
                                  "choose larger types for them: tensors: [{match: .., type: ..}]")
                    : usage_error("no importance matrix is given, but some types need one",
                                  "add one: stages: [{importance: {file: imatrix.gguf}}], or --imatrix imatrix.gguf");
  const char* tail = tensors.size() == 1 ? "" : tensors.size() == 2 ? " and 1 more" : " and others";
  error.detail = fmt::format("tensors of such types: {} ({}{})", types, quoted_name(tensors.front()->name), tail);
  return error;
}

// Adds problems to the model: one for the tensors that have no importance but a type that the recipe refuses without
// it, and one for each tensor with importance data of the wrong size.
void find_importance_problems(const Recipe& recipe, Model& model) {
  std::vector<const Tensor*> without;
  for (const Tensor& tensor : model.tensors)
    if (tensor.converted() && tensor.importance_fault)
      model.problems.push_back(*tensor.importance_fault);
    else if (!tensor.importance && needs(recipe, tensor))
      without.push_back(&tensor);
  if (!without.empty()) model.problems.push_back(no_importance(without, model.notes.get(notes::kImportanceGiven)));
}

class QuantizeStage : public Stage {
 public:
  QuantizeStage(QuantizeStageOptions options, RecipeShelf shelf)
      : options_(std::move(options)), shelf_(std::move(shelf)) {}

  const QuantizeStageOptions& options() const { return options_; }
  const RecipeShelf& shelf() const { return shelf_; }

  Result<Model> apply(Model model) const override {
    BOOST_OUTCOME_TRY(const std::vector<std::size_t> open, decide(model));
    if (options_.target) {
      BOOST_OUTCOME_TRY(fill(model, open));
    }
    find_importance_problems(options_.recipe, model);
    write_metadata(model);
    model.notes.set(notes::kRecipe, options_.target ? options_.recipe.name + "-" + options_.target->objective.name
                                                    : options_.recipe.name);
    return model;
  }

  // Applies the recipe and the rules. Returns the indices of the tensors they leave undecided.
  Result<std::vector<std::size_t>> decide(Model& model) const {
    if (options_.order_by_layer) sort_by_layer(model.tensors);
    // The rules and the output count dimensions as ggml does: without trailing ones.
    for (Tensor& tensor : model.tensors) {
      BOOST_OUTCOME_TRY(tensor.expression,
                        expressions::reshape(tensor.expression, without_last_ones(tensor.expression->shape)));
    }
    std::vector<TensorRule> rules = options_.rules;
    const ModelFacts facts = facts_of(model);
    Decider decider(options_.recipe, rules, options_.pure, options_.fallback, facts);
    Misfits misfits;
    std::vector<std::size_t> open;
    for (Tensor& tensor : model.tensors) {
      auto decided = decider.decide(tensor);
      if (!decided) return error_at(options_.origin, decided.error().what, decided.error().help);
      Decision& decision = decided.value();
      BOOST_OUTCOME_TRY(check_requantize(tensor, *decision.type));
      if (decision.refused) misfits.add(decision, tensor);
      if (decision.is_open) open.push_back(static_cast<std::size_t>(&tensor - model.tensors.data()));
      tensor.type = decision.type;
      tensor.fallback_from = decision.refused ? nullptr : decision.wanted;
      tensor.reason = std::move(decision.reason);
    }
    BOOST_OUTCOME_TRY(check_rules_used(rules));
    const Origin& asked = options_.recipe.is_type ? options_.recipe_origin : options_.origin;
    for (Error& error : misfits.errors(asked, options_.misfit_is_given, shelf_.types()))
      model.problems.push_back(std::move(error));
    return open;
  }

  std::vector<std::string> inputs() const override {
    std::vector<std::string> paths = options_.recipe.files;
    if (options_.target) paths.insert(paths.end(), options_.target->inputs.begin(), options_.target->inputs.end());
    return paths;
  }

 private:
  // Assigns types to the open tensors: those with the smallest loss within the budget.
  Status fill(Model& model, const std::vector<std::size_t>& open) const {
    TargetOptions target = *options_.target;
    if (!target.measurement) return assume(model, open);
    const std::uint64_t other_bytes = model.notes.get(notes::kOtherBytes);
    auto choice = choose_types(target, model, open, other_bytes);
    // Falls back to the simplest objective if the default one does not apply to this model.
    if (!choice && !target.objective_is_given && target.objective.kind == ObjectiveKind::kStream) {
      const std::string why = choice.error().what;
      BOOST_OUTCOME_TRY(target.objective, find_objective("relative", options_.origin));
      choice = choose_types(target, model, open, other_bytes);
      if (choice) model.warnings.push_back(fmt::format("types are chosen with objective 'relative': {}", why));
    }
    if (!choice) return choice.error();
    if (!choice.value().is_proven)
      model.warnings.push_back("the choice of types is good, but not proven to be optimal");
    for (const ChosenTensor& chosen : choice.value().tensors) {
      Tensor& tensor = model.tensors[chosen.tensor];
      BOOST_OUTCOME_TRY(check_requantize(tensor, *chosen.type));
      tensor.type = chosen.type;
      const auto& part = target.budgets[chosen.budget].tensors;
      tensor.reason = fmt::format("{}{}: counts {:.3g}", target.objective.name,
                                  part ? fmt::format(", of '{}'", part->text()) : "", chosen.counts);
      if (chosen.better)
        tensor.reason +=
            fmt::format("; {} takes {} more and saves {:.2g} of {:.3g}", chosen.better->type->name,
                        human_bytes(chosen.better->more_bytes), chosen.better->less_loss, choice.value().loss);
    }
    model.notes.set(notes::kFilledBytes, tensor_bytes(model));
    return ok();
  }

  // Assumes types while there is no measurement: the rest of the job can be planned, and the added problem prevents it
  // from running.
  Status assume(Model& model, const std::vector<std::size_t>& open) const {
    BOOST_OUTCOME_TRY(const AssumedChoice assumed,
                      assume_types(*options_.target, model, open, model.notes.get(notes::kOtherBytes)));
    for (const ChosenTensor& chosen : assumed.choice.tensors) {
      model.tensors[chosen.tensor].type = chosen.type;
      model.tensors[chosen.tensor].reason = "assumed: not yet measured";
    }
    const std::uint64_t bytes = tensor_bytes(model), others = bytes - assumed.choice.bytes;
    model.problems.push_back(unmeasured(options_.origin, others + assumed.least_bytes, others + assumed.most_bytes));
    model.notes.set(notes::kFilledBytes, bytes);
    return ok();
  }

  Status check_rules_used(const std::vector<TensorRule>& rules) const {
    Diagnostics unused;
    for (const TensorRule& rule : rules) {
      if (rule.used || rule.optional) continue;
      unused.add(error_at(rule.origin, fmt::format("no tensor matches '{}'", rule.match.text()),
                          "`ggufmill inspect` lists the tensors; an earlier rule may have matched them all"));
    }
    if (!unused.empty()) return unused.together();
    return ok();
  }

  // Refuses to quantize an already quantized tensor again unless allowed: the lost precision cannot be recovered.
  Status check_requantize(const Tensor& tensor, const TypeInfo& type) const {
    if (options_.requantize || !tensor.source_type().is_quantized() || &type == &tensor.source_type()) return ok();
    return error_at(
        options_.origin,
        fmt::format("tensor '{}' is already {} and would become {}", tensor.name, tensor.source_type().name, type.name),
        "start from the F16, BF16, or F32 model, or allow it: requantize: true, or --allow-requantize");
  }

  void write_metadata(Model& model) const {
    model.metadata.set_at_end("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    if (options_.recipe.file_type)
      model.metadata.set_at_end("general.file_type",
                                metadata_unsigned(MetadataType::kUint32, *options_.recipe.file_type));
    else if (const MetadataValue* before = model.metadata.find("general.file_type"))
      model.metadata.set_at_end("general.file_type", MetadataValue(*before));
    else
      model.metadata.set_at_end("general.file_type",
                                metadata_unsigned(MetadataType::kUint32, guessed_file_type(model.tensors, shelf_)));
  }

  QuantizeStageOptions options_;
  RecipeShelf shelf_;
};

// ---- fields and their parsing ----

constexpr std::string_view kTypeParent = "base";  // base of a recipe made from a single type

constexpr std::string_view kFallback = "fallback";

FieldSpec misfit_field(std::string doc) {
  FieldSpec field{"misfit", FieldKind::kEnum, std::move(doc)};
  field.choices = {"refuse", std::string(kFallback)};
  return field;
}

FieldSpec tensors_field() {
  FieldSpec rule{"", FieldKind::kMap, "A rule; the first match for a tensor decides."};
  rule.fields = {{"match", FieldKind::kRegex, "Pattern to find anywhere in the tensor name (Perl syntax)."},
                 {"type", FieldKind::kTypeName, "The new type, or `keep` for the current one."}};
  rule.fields.push_back({"optional", FieldKind::kBool, "Whether the rule may match no tensor."});
  rule.fields.back().default_text = "false";
  rule.fields.push_back(misfit_field("Overrides the stage's `misfit` for this rule."));
  rule.fields[0].required = rule.fields[1].required = true;
  rule.fields[0].example = "'blk\\.\\d+\\.ffn_down'";
  rule.fields[1].choices = {"keep"};
  rule.fields[1].example = "Q5_K";
  FieldSpec field{"tensors", FieldKind::kList, "Rules for individual tensors; a rule without a match is an error."};
  field.item = {std::move(rule)};
  return field;
}

FieldSpec mapping() {
  FieldSpec map{"", FieldKind::kMap, "A recipe or a type, with additional rules."};
  FieldSpec more{"rules", FieldKind::kList, "Recipe rules that take precedence over the recipe's own."};
  const FieldSpec recipe = recipe_fields();
  for (const FieldSpec& field : recipe.fields)
    if (field.name == "rules") more.item = field.item;
  FieldSpec order{"order", FieldKind::kEnum,
                  "Tensor order: layer by layer, sorted by name, as written by llama-quantize; or as in the source."};
  order.choices = {"layers", "source"};
  order.default_text = "layers";
  map.fields = {
      {"recipe", FieldKind::kString, "Name of a built-in recipe, or path of a recipe file."},
      {"type", FieldKind::kTypeName, "One type for all tensors of two or more dimensions."},
      tensors_field(),
      std::move(more),
      {"pure", FieldKind::kBool, "Whether to use the recipe's type for all tensors and ignore its rules."},
      {"requantize", FieldKind::kBool, "Whether quantized tensors may be requantized."},
      std::move(order),
      misfit_field(
          "What happens to a type named here where the row length is not a multiple of its block size: it is refused, "
          "or replaced according to the recipe's `fallback`. A recipe's own types always fall back.")};
  for (FieldSpec& field : target_fields()) map.fields.push_back(std::move(field));
  map.fields[0].example = "Q4_K_M";
  map.fields[1].example = "Q4_K";
  map.fields[4].default_text = "false";
  map.fields[5].default_text = "true";
  map.fields[7].default_text = "refuse";
  return map;
}

Result<bool> flag(const ConfigNode& value, std::string_view name, bool otherwise) {
  const ConfigNode* node = value.find(name);
  return node ? to_bool(*node) : Result<bool>(otherwise);
}

bool falls_back(const ConfigNode& value, bool otherwise) {
  const ConfigNode* misfit = value.find("misfit");
  return misfit ? misfit->scalar == kFallback : otherwise;
}

Result<std::vector<TensorRule>> read_rules(const ConfigNode* list, bool fallback, const Types& types) {
  std::vector<TensorRule> rules;
  if (!list) return rules;
  for (const ConfigNode& node : list->items) {
    const ConfigNode& match = *node.find("match");
    BOOST_OUTCOME_TRY(Pattern pattern, Pattern::compile(match.scalar));
    const std::string& type = node.find("type")->scalar;
    BOOST_OUTCOME_TRY(const bool optional, flag(node, "optional", false));
    rules.push_back({std::move(pattern), type == "keep" ? nullptr : types.find(type),
                     fmt::format("tensors[{}]: {}", rules.size(), match.scalar), origin_of(match), optional,
                     falls_back(node, fallback), node.find("misfit") != nullptr, false});
  }
  return rules;
}

Result<QuantizeStageOptions> read_mapping(const ConfigNode& value, const RecipeShelf& shelf) {
  QuantizeStageOptions options;
  const ConfigNode* recipe = value.find("recipe");
  const ConfigNode* type = value.find("type");
  const ConfigNode* target = value.find("target");
  const int given = (recipe ? 1 : 0) + (type ? 1 : 0) + (target ? 1 : 0);
  if (given != 1)
    return error_at(value,
                    given == 0       ? "neither a recipe nor a type is given"
                    : recipe && type ? "both a recipe and a type are given"
                                     : "a target is given together with a recipe or a type",
                    "give one of them: {recipe: Q4_K_M}, {type: Q4_K}, or {target: {bits: 4.5}}");
  options.origin = origin_of(value);
  options.recipe_origin = origin_of(recipe ? *recipe : type ? *type : *target);
  BOOST_OUTCOME_TRY(options.recipe, recipe ? shelf.find(recipe->scalar, options.recipe_origin)
                                    : type ? recipe_of_type(*shelf.types().find(type->scalar), shelf)
                                           : recipe_of_target(shelf));
  if (target) {
    BOOST_OUTCOME_TRY(options.target, read_target(value, shelf));
  } else {
    BOOST_OUTCOME_TRY(refuse_target_fields(value));
  }
  if (const ConfigNode* rules = value.find("rules")) {
    BOOST_OUTCOME_TRY(add_rules(*rules, "rules", shelf.types(), options.recipe));
  }
  options.fallback = falls_back(value, false);
  options.misfit_is_given = value.find("misfit") != nullptr;
  BOOST_OUTCOME_TRY(options.rules, read_rules(value.find("tensors"), options.fallback, shelf.types()));
  BOOST_OUTCOME_TRY(options.pure, flag(value, "pure", false));
  BOOST_OUTCOME_TRY(options.requantize, flag(value, "requantize", true));
  const ConfigNode* order = value.find("order");
  options.order_by_layer = !order || order->scalar == "layers";
  return options;
}

FieldSpec quantize_fields() {
  FieldSpec name{"", FieldKind::kString, "Name of a built-in recipe, path of a recipe file, or a type."};
  name.example = "Q4_K_M";
  FieldSpec field{"quantize", FieldKind::kOneOf, "Chooses the type of each tensor."};
  field.alternatives = {std::move(name), mapping()};
  field.example = "{recipe: Q3_K_M, tensors: [{match: 'ffn_down', type: Q5_K}]}";
  return field;
}

// `value` has passed the lint.
Result<QuantizeStageOptions> read_quantize(const ConfigNode& value, const RecipeShelf& shelf) {
  if (value.is_map()) return read_mapping(value, shelf);
  QuantizeStageOptions options;
  options.origin = options.recipe_origin = origin_of(value);
  auto recipe = shelf.find(value.scalar, options.origin);
  if (const TypeInfo* type = shelf.types().find(value.scalar); type && (!recipe || recipe.value().partial))
    recipe = recipe_of_type(*type, shelf);
  BOOST_OUTCOME_TRY(options.recipe, std::move(recipe));
  return options;
}

}  // namespace

Result<std::unique_ptr<Stage>> make_quantize_stage(QuantizeStageOptions options, RecipeShelf shelf) {
  if (options.recipe.partial)
    return error_at(options.recipe_origin,
                    fmt::format("recipe '{}' is only a base for other recipes", options.recipe.name),
                    "`ggufmill recipe list` lists the complete recipes");
  return std::make_unique<QuantizeStage>(std::move(options), std::move(shelf));
}

Result<Recipe> recipe_of_type(const TypeInfo& type, const RecipeShelf& shelf) {
  BOOST_OUTCOME_TRY(Recipe recipe, shelf.find(std::string(kTypeParent)));
  recipe.rules.clear();
  recipe.adjust.clear();
  recipe.is_type = true;
  recipe.needs_importance.clear();
  recipe.keep.erase(std::remove_if(recipe.keep.begin(), recipe.keep.end(),
                                   [](const Rule& rule) { return !rule.condition.rank_below; }),
                    recipe.keep.end());
  recipe.partial = false;
  recipe.type = &type;
  recipe.name = type.name;
  recipe.file_type = shelf.file_type_of(recipe.name);
  return recipe;
}

Result<std::vector<const TypeInfo*>> types_wanting_importance(const RecipeShelf& shelf) {
  BOOST_OUTCOME_TRY(const Recipe recipe, shelf.find(std::string(kTypeParent)));
  return recipe.needs_importance;
}

Result<Recipe> recipe_of_target(const RecipeShelf& shelf) {
  BOOST_OUTCOME_TRY(Recipe recipe, shelf.find(std::string(kTypeParent)));
  recipe.rules.clear();
  recipe.adjust.clear();
  recipe.needs_importance.clear();
  recipe.partial = false;
  recipe.type = nullptr;
  recipe.name = "target";
  recipe.file_type.reset();
  return recipe;
}

const TargetOptions* target_of(const Stage& stage) {
  const auto* quantize = dynamic_cast<const QuantizeStage*>(&stage);
  return quantize && quantize->options().target ? &*quantize->options().target : nullptr;
}

std::unique_ptr<Stage> with_measurement(const Stage& stage, std::shared_ptr<const Measurement> measurement) {
  const auto& quantize = dynamic_cast<const QuantizeStage&>(stage);
  QuantizeStageOptions options = quantize.options();
  options.target->measurement = std::move(measurement);
  return std::make_unique<QuantizeStage>(std::move(options), quantize.shelf());
}

Result<Undecided> undecided(const Stage& stage, Model model) {
  BOOST_OUTCOME_TRY(std::vector<std::size_t> open, dynamic_cast<const QuantizeStage&>(stage).decide(model));
  return Undecided{std::move(model), std::move(open)};
}

StageSpec quantize_stage(Types types) {
  StageSpec spec;
  spec.field = quantize_fields();
  spec.per_output = true;
  spec.make = [shelf = RecipeShelf(std::move(types))](const ConfigNode& value) -> Result<std::unique_ptr<Stage>> {
    BOOST_OUTCOME_TRY(QuantizeStageOptions options, read_quantize(value, shelf));
    return make_quantize_stage(std::move(options), shelf);
  };
  return spec;
}

}  // namespace ggufmill
