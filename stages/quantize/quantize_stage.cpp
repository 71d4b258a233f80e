#include "stages/quantize/quantize_stage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/core/type_family.h"
#include "pipeline/core/wings.h"
#include "stages/quantize/facts.h"
#include "stages/quantize/rule_uses.h"
#include "stages/quantize/stream_facts.h"

namespace ggufmill {
namespace {

constexpr std::uint32_t kGuessed = 1024;
constexpr std::uint32_t kAllF32 = 0;  // used for types without a number

// Guesses general.file_type like llama.cpp does for files without it (src/llama-model-loader.cpp, MIT): the number of
// the most frequent type; among equally frequent types, the one that reaches that count first, layer by layer. A bit
// marks the number as a guess.
std::uint32_t guessed_file_type(const std::vector<Tensor>& tensors, const RecipeCatalog& catalog) {
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
  return catalog.file_type_of(*most).value_or(kAllF32) | kGuessed;
}

constexpr const char* kFileTypeKey = "general.file_type";
constexpr const char* kEncoderKey = "ggufmill.encoder";  // metadata: encoders other than a built-in recipe's

class QuantizeStage final : public TargetStage {
 public:
  QuantizeStage(QuantizeStageOptions options, RecipeCatalog catalog)
      : options_(std::move(options)), catalog_(std::move(catalog)) {}

  bool uses_importance() const override { return true; }
  const TargetStage* as_target() const override { return options_.target ? this : nullptr; }
  const TargetOptions& target() const override { return *options_.target; }

  std::unique_ptr<Stage> with_measurement(std::shared_ptr<const Measurement> measurement) const override {
    QuantizeStageOptions options = options_;
    options.target->measurement = std::move(measurement);
    return std::make_unique<QuantizeStage>(std::move(options), catalog_);
  }

  std::unique_ptr<Stage> without_measurement() const override {
    QuantizeStageOptions options = options_;
    forget_measurement(*options.target);
    return std::make_unique<QuantizeStage>(std::move(options), catalog_);
  }

  Encoder encoder() const override {
    const Encoder own = options_.encoder.value_or(reference_encoder());
    for (const EncodersByType* encoders : {&options_.encoders, &options_.target->encoders, &options_.recipe.encoders})
      for (const auto& [type, encoder] : *encoders)
        if (own.is_reference() && !encoder.is_reference()) return encoder;
    return own;
  }

  std::unique_ptr<Stage> with_encoder(const Encoder& encoder) const override {
    QuantizeStageOptions options = options_;
    options.encoder = encoder;
    options.encoders.clear();
    options.recipe.encoders.clear();
    options.target->encoders.clear();
    forget_measurement(*options.target);
    return std::make_unique<QuantizeStage>(std::move(options), catalog_);
  }

  Result<Undecided> undecided(Model model) const override {
    BOOST_OUTCOME_TRY(std::vector<std::size_t> open, decide(model));
    std::vector<std::size_t> energies = open_encoders(model, open);
    return Undecided{&target(), std::move(model), std::move(open), std::move(energies)};
  }

  Result<Model> apply(Model model) const override {
    BOOST_OUTCOME_TRY(const std::vector<std::size_t> open, decide(model));
    if (options_.target) {
      if (options_.target->probes_fault) return *options_.target->probes_fault;
      BOOST_OUTCOME_TRY(fill(model, open));
    }
    BOOST_OUTCOME_TRY(arrange_rows(model));
    warn_if_all_are_kept(model);
    if (options_.recipe.is_list) warn_of_rest(model, open);
    warn_of_unused_encoders(model);
    find_importance_problems(options_.recipe, model);
    find_missing_covariance(options_.origin, model);
    write_metadata(model);
    model.notes.set(notes::kRecipe, options_.target ? options_.recipe.name + "-" + options_.target->objective.name
                                                    : options_.recipe.name);
    return model;
  }

  std::vector<std::string> inputs() const override {
    std::vector<std::string> paths = options_.recipe.files;
    if (options_.target) paths.insert(paths.end(), options_.target->inputs.begin(), options_.target->inputs.end());
    return paths;
  }

 private:
  static void forget_measurement(TargetOptions& target) {
    std::erase(target.inputs, target.measured);
    target.measured.clear();
    target.measurement = nullptr;
    target.measured_fault.reset();
  }

  // Applies the recipe and the rules. Returns the indices of the tensors they leave undecided.
  Result<std::vector<std::size_t>> decide(Model& model) const {
    if (options_.order_by_layer.value_or(options_.recipe.by_layer.value_or(true))) sort_by_layer(model.tensors);
    const ModelFacts facts = facts_of(model);
    BOOST_OUTCOME_TRY(drop_trailing_ones(model, facts));
    std::vector<TensorRule> rules = options_.rules;
    Decider decider(options_.recipe, rules, options_.pure, options_.fallback, facts);
    Misfits misfits;
    std::vector<std::size_t> open;
    for (Tensor& tensor : model.tensors) {
      auto decided = decider.decide(tensor);
      if (!decided)
        return decided.error().where.empty() ? error_at(options_.origin, decided.error().what, decided.error().help)
                                             : decided.error();
      Decision& decision = decided.value();
      BOOST_OUTCOME_TRY(check_requantize(tensor, *decision.type));
      if (decision.refused) misfits.add(decision, tensor);
      if (decision.is_open) open.push_back(static_cast<std::size_t>(&tensor - model.tensors.data()));
      tensor.type = decision.type;
      tensor.fallback_from = decision.refused ? nullptr : decision.wanted;
      tensor.reason = std::move(decision.reason);
      tensor.encoder = decision.encoder ? *decision.encoder : encoder_of(*tensor.type, model);
    }
    BOOST_OUTCOME_TRY(check_rules_used(rules, options_.warns_of_unused_rules, model));
    const Origin& asked = options_.recipe.is_type ? options_.recipe_origin : options_.origin;
    for (Error& error : misfits.errors(asked, options_.misfit_is_given, catalog_.types()))
      model.problems.push_back(std::move(error));
    return open;
  }

  // Gives the tensors whose energy the objective uses the encoder that they have if they are open. Returns their
  // indices.
  std::vector<std::size_t> open_encoders(Model& model, const std::vector<std::size_t>& open) const {
    std::vector<std::size_t> energies = tensors_with_energy(target().objective, model, open);
    for (const std::size_t i : energies) model.tensors[i].encoder = encoder_of(model.tensors[i].source_type(), model);
    return energies;
  }

  // Interleaves or separates rows as the output asks for, without changing values.
  Status arrange_rows(Model& model) const {
    BOOST_OUTCOME_TRY(check_repack_used(model));
    for (Tensor& tensor : model.tensors) {
      BOOST_OUTCOME_TRY(tensor.type, repacked_type(tensor));
      if (&plain_type(*tensor.type) == &plain_type(tensor.source_type())) {
        BOOST_OUTCOME_TRY(tensor.expression, expressions::interleave(tensor.expression, *tensor.type));
      }
    }
    return ok();
  }

  Status check_repack_used(const Model& model) const {
    if (options_.repack && options_.repack->interleaved && interleaved_types().empty())
      return usage_error("no type of this build has interleaved rows", omitted_wing_help("repack"));
    if (!options_.repack || !options_.repack->match) return ok();
    for (const Tensor& tensor : model.tensors) {
      BOOST_OUTCOME_TRY(const bool match, options_.repack->match->matches(tensor.name));
      if (match) return ok();
    }
    return no_match(*options_.repack->match, options_.repack->origin);
  }

  Result<const TypeInfo*> repacked_type(const Tensor& tensor) const {
    if (!options_.repack) return tensor.type;
    if (options_.repack->match) {
      BOOST_OUTCOME_TRY(const bool match, options_.repack->match->matches(tensor.name));
      if (!match) return tensor.type;
    }
    if (!options_.repack->interleaved) return tensor.type->ungrouped ? tensor.type : &plain_type(*tensor.type);
    for (const TypeInfo* type : catalog_.types().interleaved())
      if (type->plain == tensor.type && why_plain(options_.recipe, tensor, *type).empty()) return type;
    return tensor.type;
  }

  // The output counts dimensions as ggml does, without trailing ones, unless readers of such models need them.
  Status drop_trailing_ones(Model& model, const ModelFacts& facts) const {
    if (model.notes.get(notes::kKeepsDimensions)) return ok();
    if (in_any(options_.recipe.keep_dimensions, options_.recipe.models, facts)) return ok();
    for (Tensor& tensor : model.tensors) {
      BOOST_OUTCOME_TRY(tensor.expression,
                        expressions::reshape(tensor.expression, without_trailing_ones(tensor.expression->shape)));
    }
    return ok();
  }

  // Returns the encoder of a tensor whose rule has none. Where none is named, the covariance that was given is used.
  Encoder encoder_of(const TypeInfo& type, const Model& model) const {
    const auto found = options_.recipe.encoders.find(&plain_type(type));
    if (found != options_.recipe.encoders.end()) return found->second;
    if (options_.encoder) return *options_.encoder;
    if (!options_.recipe.encoder && model.notes.get(notes::kCovarianceGiven)) return covariance_encoder();
    return recipe_encoder(type);
  }

  // Returns the encoder that the recipe gives to a type: its own if the type has it, otherwise the reference.
  Encoder recipe_encoder(const TypeInfo& type) const {
    const std::optional<Encoder>& encoder = options_.recipe.encoder;
    return encoder && has_method(*encoder->method, type) ? *encoder : reference_encoder();
  }

  // Assigns types to the open tensors: those with the smallest loss within the budget.
  Status fill(Model& model, const std::vector<std::size_t>& open) const {
    if (model.notes.get(notes::kOnlyHeaders)) return ok();
    TargetOptions target = *options_.target;
    if (target.measured_fault) return *target.measured_fault;
    if (!target.measurement) return assume(model, open);
    const std::uint64_t other_bytes = model.notes.get(notes::kOtherBytes);
    Model measured = model;
    open_encoders(measured, open);
    auto choice = choose_types(target, measured, open, other_bytes);
    // Falls back to the simplest objective if the default one does not apply to this model.
    if (!choice && !wants_measurement(choice.error()) && !target.objective_is_given &&
        target.objective.kind == ObjectiveKind::kStream) {
      const std::string why = choice.error().what;
      BOOST_OUTCOME_TRY(target.objective, find_objective("relative", options_.origin));
      choice = choose_types(target, measured, open, other_bytes);
      if (choice) model.warnings.push_back(fmt::format("types are chosen with objective 'relative': {}", why));
    }
    if (!choice) return choice.error();
    report_choice(target, choice.value(), model);
    for (const ChosenTensor& chosen : choice.value().tensors) {
      Tensor& tensor = model.tensors[chosen.tensor];
      BOOST_OUTCOME_TRY(check_requantize(tensor, *chosen.type));
      tensor.type = chosen.type;
      tensor.encoder = encoder_of(*chosen.type, model);
      const auto& part = target.budgets[chosen.budget].tensors;
      tensor.reason = fmt::format("{}{}: counts {:.3g}", target.objective.name,
                                  part ? fmt::format(", of '{}'", part->text()) : "", chosen.counts);
      if (chosen.better)
        tensor.reason +=
            fmt::format("; {} takes {} more and saves {:.2g} of {:.3g}", chosen.better->type->name,
                        human_bytes(chosen.better->more_bytes), chosen.better->less_loss, choice.value().loss);
      if (chosen.is_cautious)
        tensor.reason +=
            fmt::format("; importance is little known, so at least {}", target.objective.cautious->at_least->name);
    }
    return ok();
  }

  // Assumes types while there is no measurement: the rest of the job can be planned, and the added problem prevents it
  // from running.
  Status assume(Model& model, const std::vector<std::size_t>& open) const {
    BOOST_OUTCOME_TRY(const AssumedChoice assumed,
                      assume_types(*options_.target, model, open, model.notes.get(notes::kOtherBytes)));
    for (const ChosenTensor& chosen : assumed.choice.tensors) {
      model.tensors[chosen.tensor].type = chosen.type;
      model.tensors[chosen.tensor].encoder = encoder_of(*chosen.type, model);
      model.tensors[chosen.tensor].reason = "assumed: not yet measured";
    }
    const std::uint64_t bytes = tensor_bytes(model), others = bytes - assumed.choice.bytes;
    model.problems.push_back(unmeasured(options_.origin, others + assumed.min_bytes, others + assumed.max_bytes));
    return ok();
  }

  void warn_if_all_are_kept(Model& model) const {
    if (!options_.recipe.type || !options_.recipe.type->is_quantized() || model.tensors.empty()) return;
    if (std::ranges::any_of(model.tensors, [](const Tensor& tensor) { return tensor.type->is_quantized(); })) return;
    const std::string first = quoted_name(model.tensors[0].name);
    std::string warning = model.tensors.size() == 1
                              ? fmt::format("{} does not quantize the only tensor: {} is {}", options_.recipe.name,
                                            first, model.tensors[0].reason)
                              : fmt::format("{} quantizes none of the {} tensors: {}, for example, is {}",
                                            options_.recipe.name, model.tensors.size(), first, model.tensors[0].reason);
    const MetadataValue* const kind = model.metadata.find("general.type");
    if (kind && as_string(*kind) == "adapter")
      warning += "; the matrices of an adapter get the type that `outtype` in `source: {lora: ...}` names";
    model.warnings.push_back(std::move(warning));
  }

  // Reports the tensors that no line of a list of types matches.
  void warn_of_rest(Model& model, const std::vector<std::size_t>& open) const {
    if (open.empty()) return;
    const bool is_one = open.size() == 1;
    model.warnings.push_back(fmt::format("{} of {} {} type, because no line of {} matches {}: {}{}", open.size(),
                                         counted(model.tensors.size(), "tensor"), is_one ? "keeps its" : "keep their",
                                         options_.recipe.name, is_one ? "it" : "them",
                                         quoted_name(model.tensors[open[0]].name), is_one ? "" : ", ..."));
  }

  void warn_of_unused_encoders(Model& model) const {
    const auto by_reference = [](const Tensor& tensor) { return used(tensor.encoder, tensor).is_reference(); };
    if (options_.encoder && !options_.encoder->is_reference() && std::ranges::all_of(model.tensors, by_reference))
      model.warnings.push_back(
          fmt::format("no tensor is encoded with {}: no converted tensor has a type that supports it",
                      describe(*options_.encoder)));
    if (options_.target) return;
    for (const auto& entry : options_.encoders) {
      const TypeInfo* const type = entry.first;
      if (std::ranges::none_of(model.tensors,
                               [&](const Tensor& tensor) { return tensor.converted() && tensor.type == type; }))
        model.warnings.push_back(
            fmt::format("no tensor becomes {}, for which `encoders` gives an encoder", type->name));
    }
  }

  // Refuses to quantize an already quantized tensor again unless allowed: the lost precision cannot be recovered.
  Status check_requantize(const Tensor& tensor, const TypeInfo& type) const {
    if (options_.requantize || !tensor.source_type().is_quantized() ||
        &plain_type(type) == &plain_type(tensor.source_type()))
      return ok();
    return with_options(
        error_at(options_.origin,
                 fmt::format("tensor '{}' is already {} and would become {}", tensor.name, tensor.source_type().name,
                             type.name),
                 "start from the F16, BF16, or F32 model, or allow it: requantize: true"),
        "start from the F16, BF16, or F32 model, or allow it: " + option_reference("allow_requantize", "true"));
  }

  // Returns what is used of an encoder for a tensor; the reference if the tensor is not converted.
  static Encoder used(const Encoder& encoder, const Tensor& tensor) {
    if (!tensor.converted()) return reference_encoder();
    return encoder_for(encoder, *tensor.type, tensor.importance != nullptr, tensor.covariance.get());
  }

  // Returns true if the tensor is encoded in another way than the built-in recipe, or else the reference, does.
  bool has_own_encoder(const Tensor& tensor) const {
    const bool is_built_in = options_.recipe.files.empty();
    const Encoder expected = is_built_in ? recipe_encoder(*tensor.type) : reference_encoder();
    return used(tensor.encoder, tensor) != used(expected, tensor);
  }

  // Returns the encoders that converted tensors were asked to have: described, each once, in the order of the tensors.
  // Settings that a type does not support stay in the text, so that a file made with one encoder has one text.
  std::string encoders_of(const Model& model) const {
    std::vector<std::string> described;
    for (const Tensor& tensor : model.tensors)
      if (const std::string text = describe(tensor.encoder);
          has_own_encoder(tensor) && std::ranges::count(described, text) == 0)
        described.push_back(text);
    return fmt::format("{}", fmt::join(described, "; "));
  }

  void set_number(const char* key, MetadataValue value, Metadata& metadata) const {
    if (options_.recipe.keys_in_place.value_or(false))
      metadata.set(key, std::move(value));
    else
      metadata.set_at_end(key, std::move(value));
  }

  // Returns the file type of rows that are interleaved or separated by `repack`.
  MetadataValue repacked(MetadataValue file_type) const {
    const auto number = options_.repack ? as_unsigned(file_type) : std::nullopt;
    if (!number || *number > UINT32_MAX) return file_type;
    const auto before = static_cast<std::uint32_t>(*number);
    return metadata_unsigned(MetadataType::kUint32, options_.repack->interleaved
                                                        ? RecipeCatalog::interleaved_file_type(before)
                                                        : RecipeCatalog::plain_file_type(before));
  }

  void write_metadata(Model& model) const {
    const auto number = [](std::uint32_t value) { return metadata_unsigned(MetadataType::kUint32, value); };
    if (const std::string encoders = encoders_of(model); !encoders.empty())
      model.metadata.set_at_end(kEncoderKey, metadata_string(encoders));
    else if (std::ranges::any_of(model.tensors, &Tensor::converted))
      model.metadata.remove(kEncoderKey);  // that of an earlier run
    set_number("general.quantization_version", number(2), model.metadata);
    const MetadataValue* before = model.metadata.find(kFileTypeKey);
    const bool is_guessed = !before || options_.recipe.is_list || options_.recipe.is_type || options_.target;
    MetadataValue file_type = options_.recipe.file_type ? number(*options_.recipe.file_type)
                              : is_guessed              ? number(guessed_file_type(model.tensors, catalog_))
                                                        : *before;
    set_number(kFileTypeKey, repacked(std::move(file_type)), model.metadata);
  }

  QuantizeStageOptions options_;
  RecipeCatalog catalog_;
};

}  // namespace

std::unique_ptr<Stage> make_quantize_stage(QuantizeStageOptions options, RecipeCatalog catalog) {
  return std::make_unique<QuantizeStage>(std::move(options), std::move(catalog));
}

const TargetOptions* target_of(const Stage& stage) {
  const TargetStage* fills = stage.as_target();
  return fills ? &fills->target() : nullptr;
}

Result<std::optional<Undecided>> undecided(std::span<const std::shared_ptr<const Stage>> stages, Model model) {
  for (const auto& stage : stages) {
    if (const TargetStage* fills = stage->as_target()) {
      BOOST_OUTCOME_TRY(Undecided made, fills->undecided(std::move(model)));
      return made;
    }
    BOOST_OUTCOME_TRY(model, stage->apply(std::move(model)));
  }
  return std::nullopt;
}

}  // namespace ggufmill
