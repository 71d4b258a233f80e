#include "stages/huggingface/map/restored_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <set>

#include "pipeline/core/text.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/metadata_object.h"
#include "stages/huggingface/map/metadata_rules.h"
#include "stages/huggingface/map/model_type.h"
#include "stages/huggingface/map/tensor_steps.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kRope = "rope.";  // names of the settings that classes have in several places

const Tensor* find_tensor(const Model& model, std::string_view name) {
  const auto found = std::ranges::find(model.tensors, name, &Tensor::name);
  return found == model.tensors.end() ? nullptr : &*found;
}

Result<std::vector<float>> values_of(const Tensor& tensor) {
  auto values = read_small_values(*tensor.expression);
  if (!values)
    return usage_error(
        fmt::format("the values of tensor {} cannot be read: {}", quoted_name(tensor.name), values.error().what));
  return values;
}

class ConfigMaker {
 public:
  ConfigMaker(const Model& model, const fs::path& folder, std::string architecture, const Architecture& map,
              const CheckpointClass& row, const Facts& facts)
      : model_(model),
        facts_(facts),
        folder_(folder),
        prefix_(architecture + "."),
        architecture_(std::move(architecture)),
        map_(map),
        row_(row) {}

  Result<json::object> make() {
    config_["architectures"] = json::array{json::string(row_.name)};
    config_["model_type"] = row_.type;
    BOOST_OUTCOME_TRY(const CompletedConfig defaults, with_class_defaults(folder_, config_));
    for (const auto& member : defaults.config) known_.insert(member.key());
    const Tensor* const embedding = find_tensor(model_, "token_embd.weight");
    if (!embedding) return usage_error("the model has no tensor token_embd.weight");
    set("vocab_size", embedding->shape().rows());
    set("tie_word_embeddings", !find_tensor(model_, "output.weight"));
    for (const auto& [name, key] :
         {std::pair("bos_token_id", "bos"), {"eos_token_id", "eos"}, {"pad_token_id", "padding"}})
      if (const auto* id = model_.metadata.find(fmt::format("tokenizer.ggml.{}_token_id", key)); id && as_unsigned(*id))
        set(name, *as_unsigned(*id));
    for (const MetadataRule& rule : map_.metadata) {
      BOOST_OUTCOME_TRY(invert(rule));
    }
    if (!rope_.empty()) config_["rope_scaling"] = rope_;
    for (const auto& [name, rule] : row_.config) {
      BOOST_OUTCOME_TRY(json::value value, facts_.evaluate(rule));
      if (!value.is_null()) config_[name] = std::move(value);
    }
    BOOST_OUTCOME_TRY(check());
    return std::move(config_);
  }

 private:
  void set(std::string_view name, json::value value) {
    if (!config_.contains(name)) config_[name] = std::move(value);
  }

  // Returns the value of an entry, or what llama.cpp uses if `metadata` lacks it; null if there is neither.
  Result<json::value> value_of(const Metadata& metadata, const std::string& key) const {
    if (const MetadataValue* const entry = metadata.find(key)) return json_of(*entry);
    const auto rule = key.starts_with(prefix_) ? map_.defaults.find(key.substr(prefix_.size())) : map_.defaults.end();
    if (rule == map_.defaults.end()) return json::value();
    return facts_.evaluate(rule->second);
  }

  // Sets the key of config.json that a rule makes an entry of, if the model has a value for the entry.
  Status invert(const MetadataRule& rule) {
    if (rule.by_member) return ok();
    const std::string name = key_behind(rule.value, {});
    if (name.empty()) return ok();
    BOOST_OUTCOME_TRY(json::value value, value_of(model_.metadata, whole_key(rule.key, architecture_)));
    if (value.is_null()) return ok();
    if (!name.starts_with(kRope))
      set(name, std::move(value));
    else if (name == "rope.rope_theta")
      set("rope_theta", std::move(value));
    else if (const std::string member = name.substr(kRope.size()); !rope_.contains(member))
      rope_[member] = std::move(value);
    return ok();
  }

  using Names = std::set<std::string, std::less<>>;

  // Returns the key that a value is read from; empty if it is not read from one. `busy`: values of the map that are
  // being looked up; one that refers to itself means the key.
  std::string key_behind(const ValueRule& rule, const Names& busy) const {  // NOLINT(misc-no-recursion)
    if (rule.kind == ValueRule::Kind::kCall)
      return rule.function->name == "first" && !rule.arguments.empty() ? key_behind(rule.arguments.front(), busy)
                                                                       : std::string();
    for (const std::string& name : rule.names) {
      const auto own = map_.values.find(name);
      const bool is_layers = name == "layers";
      if ((own != map_.values.end() || is_layers) && !busy.contains(name)) {
        Names deeper = busy;
        deeper.insert(name);
        if (std::string key = key_behind(is_layers ? map_.layers : own->second, deeper); !key.empty()) return key;
      } else if (known_.contains(name) || (name.starts_with(kRope) && std::ranges::count(name, '.') == 1)) {
        return name;
      }
    }
    return {};
  }

  // Checks that the rules make the same metadata of config.json.
  Status check() const {
    BOOST_OUTCOME_TRY(const CompletedConfig full, with_class_defaults(folder_, config_));
    Facts facts(folder_, full.config, map_.values);
    facts.set("option", json::object{{"class", row_.name}});
    facts.set("file_type", 0);
    BOOST_OUTCOME_TRY(const std::uint64_t layers, facts.count(map_.layers, "the number of layers"));
    facts.set("layers", layers);
    Metadata made;
    if (const Status status = set_metadata(map_.metadata, map_, facts, made); !status)
      return usage_error(status.error().what);
    std::vector<std::string> different, missing;
    for (const MetadataEntry& entry : model_.metadata.entries()) {
      if (!entry.key.starts_with(prefix_)) continue;
      const MetadataValue* const same = made.find(entry.key);
      if (same && *same == entry.value) continue;
      BOOST_OUTCOME_TRY(const json::value value, value_of(made, entry.key));
      if (same || value.is_null() || value != json_of(entry.value))
        different.push_back(fmt::format("{} ({})", entry.key, describe(entry.value, 30)));
    }
    if (!different.empty()) return usage_error(fmt::format("a {} cannot express {}", row_.name, list_some(different)));
    for (const MetadataEntry& entry : made.entries()) {
      if (!entry.key.starts_with(prefix_) || model_.metadata.find(entry.key)) continue;
      BOOST_OUTCOME_TRY(const json::value value, value_of(model_.metadata, entry.key));
      if (value != json_of(entry.value)) missing.push_back(entry.key);
    }
    if (!missing.empty()) return usage_error(fmt::format("it has no {}", list_some(missing)));
    return check_computed(facts);
  }

  // Checks that the rules compute the same tensors, such as the factors of the rotary frequencies.
  Status check_computed(const Facts& facts) const {
    for (const ComputedRule& rule : map_.computed) {
      const Tensor* const tensor = find_tensor(model_, rule.name);
      BOOST_OUTCOME_TRY(const bool holds, facts.holds(rule.when));
      if (!tensor && !holds) continue;
      if (tensor && holds) {
        BOOST_OUTCOME_TRY(const auto arguments, evaluate_arguments(rule.arguments, rule.place, facts, {}));
        BOOST_OUTCOME_TRY(const ExpressionRef made, rule.function->make(arguments));
        BOOST_OUTCOME_TRY(const std::vector<float> values, values_of(*tensor));
        if (made->values == values) continue;
      }
      return usage_error(fmt::format("a {} cannot express tensor {}", row_.name, quoted_name(rule.name)));
    }
    return ok();
  }

  const Model& model_;
  const Facts& facts_;  // over the model's metadata
  const fs::path& folder_;
  const std::string prefix_, architecture_;
  const Architecture& map_;
  const CheckpointClass& row_;
  Names known_;  // keys that the class has
  json::object config_, rope_;
};

}  // namespace

Result<RestoredConfig> restored_config(const Model& model, const fs::path& folder, const AddedMaps& added) {
  const MetadataValue* const named = model.metadata.find("general.architecture");
  const std::string architecture(named ? as_string(*named).value_or("") : "");
  if (architecture.empty()) return usage_error("the model has no general.architecture");
  BOOST_OUTCOME_TRY(const MapOfModel found, map_of_model(architecture, added));
  if (!found.own || found.own->checkpoint.empty())
    return usage_error(fmt::format("the map of {} does not describe its checkpoints", quoted_name(architecture)));
  BOOST_OUTCOME_TRY(const Architecture map, read_architecture(found.place, {}, added));
  const std::map<std::string, ValueRule> none;
  Facts facts(folder, object_of(model.metadata, architecture), none);
  std::vector<std::string> names;
  for (const Tensor& tensor : model.tensors) names.push_back(tensor.name);
  facts.set_tensors(
      std::move(names),
      [&](const std::string& name, std::optional<std::uint64_t>) { return values_of(*find_tensor(model, name)); },
      [&](const std::string& name) { return find_tensor(model, name)->shape().rows(); });
  for (const CheckpointClass& row : found.own->checkpoint) {
    BOOST_OUTCOME_TRY(const bool holds, facts.holds(row.when));
    if (!holds) continue;
    BOOST_OUTCOME_TRY(json::object config, ConfigMaker(model, folder, architecture, map, row, facts).make());
    return RestoredConfig{std::move(config), found.place};
  }
  return usage_error(fmt::format("no checkpoint of {} is like this model", quoted_name(architecture)));
}

}  // namespace ggufmill::huggingface
