#include "stages/huggingface/map/run_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <set>

#include "pipeline/core/text.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/metadata_object.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr const char* kOnlyLanguageModels = "`ggufmill fit` describes models that generate text or embeddings";
constexpr const char* kFormulas = "memory";  // the map with the formulas that all architectures share
constexpr std::uint64_t kMaxLayers = 512;    // of llama.cpp (LLAMA_MAX_LAYERS)
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 40;
constexpr std::uint64_t kContextStep = 256;  // llama.cpp rounds the context up to a multiple of this
constexpr std::size_t kDeepestFormulas = 64;

using Formulas = std::map<std::string, ValueRule>;

// Evaluates formulas, each once.
class Evaluation {
 public:
  Evaluation(const Formulas& formulas, std::string architecture, json::object metadata)
      : formulas_(formulas), architecture_(std::move(architecture)), facts_({}, std::move(metadata), no_values_) {}

  void set(const std::string& name, json::value value) {
    facts_.set(name, std::move(value));
    known_.insert(name);
  }

  // Returns the value of a formula, or of a key without one. Fails if it has none.
  Result<json::value> value(const std::string& name) {
    BOOST_OUTCOME_TRY(prepare(name));
    ValueRule rule;
    rule.kind = ValueRule::Kind::kName;
    rule.names = {name};
    BOOST_OUTCOME_TRY(json::value value, facts_.evaluate(rule));
    if (!has_null(value)) return value;
    const auto key = keys_.find(name);
    return input_error(
        {}, fmt::format("the metadata has no usable '{}.{}'", architecture_, key == keys_.end() ? name : key->second),
        kOnlyLanguageModels);
  }

 private:
  // Evaluates a formula and those that it refers to.
  Status prepare(const std::string& name) {
    const auto formula = formulas_.find(name);
    if (formula == formulas_.end() || known_.contains(name)) return ok();
    if (busy_.contains(name)) return ok();  // a formula that refers to its own name means the key
    if (busy_.size() == kDeepestFormulas)
      return input_error({}, fmt::format("formulas refer to one another more than {} levels deep", kDeepestFormulas));
    busy_.insert(name);
    BOOST_OUTCOME_TRY(prepare(formula->second));
    std::vector<std::string> missing;
    auto value = facts_.evaluate(formula->second, &missing);
    busy_.erase(name);
    if (!value) {
      const Error& why = value.error();
      return input_error({}, fmt::format("the metadata does not fit the formula `{}` of {}: {}", name,
                                         formula->second.place, why.what));
    }
    if (has_null(value.value()))
      if (const std::string key = missing_key(formula->second, missing); !key.empty()) keys_.emplace(name, key);
    if (!value.value().is_null()) facts_.set(name, std::move(value).value());
    known_.insert(name);
    return ok();
  }

  static bool has_null(const json::value& value) {  // NOLINT(misc-no-recursion)
    if (const json::array* const list = value.if_array()) return std::ranges::any_of(*list, has_null);
    if (const json::object* const object = value.if_object())
      return std::ranges::any_of(*object, [](const auto& member) { return has_null(member.value()); });
    return value.is_null();
  }

  // Returns the key for which a formula has no value, or not all of it: that of a formula that it refers to, or the
  // last of those that it names, as the others are preferred to it but optional.
  std::string missing_key(const ValueRule& rule, const std::vector<std::string>& missing) const {
    const std::string key = key_behind(rule);
    return key.empty() && !missing.empty() ? missing.back() : key;
  }

  std::string key_behind(const ValueRule& rule) const {  // NOLINT(misc-no-recursion)
    for (const std::string& name : rule.names)
      if (const auto key = keys_.find(name); key != keys_.end()) return key->second;
    for (const ValueRule& argument : rule.arguments)
      if (std::string key = key_behind(argument); !key.empty()) return key;
    return {};
  }

  Status prepare(const ValueRule& rule) {
    for (const std::string& name : rule.names) {
      BOOST_OUTCOME_TRY(prepare(name));
    }
    for (const ValueRule& argument : rule.arguments) {
      BOOST_OUTCOME_TRY(prepare(argument));
    }
    return ok();
  }

  const Formulas& formulas_;
  const std::string architecture_;
  const Formulas no_values_{};
  Facts facts_;
  std::set<std::string> known_, busy_;
  std::map<std::string, std::string> keys_;  // the missing key by the name of the formula
};

Error wrong_formula(std::string_view name, std::string_view expected, const json::value& value) {
  return input_error({}, fmt::format("according to the metadata, the memory formula `{}` is {}, expected {}", name,
                                     shown(value), expected));
}

Result<std::uint64_t> count_of(const json::value& value, std::string_view name, std::uint64_t most) {
  const auto number = whole_number(value);
  if (!number || *number < 0 || static_cast<std::uint64_t>(*number) > most)
    return wrong_formula(name, fmt::format("a number from 0 to {}", most), value);
  return static_cast<std::uint64_t>(*number);
}

// Returns a count for each layer: those of a list, or the same for all.
Result<std::vector<std::uint64_t>> counts_of(const json::value& value, std::string_view name, std::uint64_t layers) {
  std::vector<std::uint64_t> counts;
  const json::array* const list = value.if_array();
  if (list && list->size() < layers)
    return wrong_formula(name, fmt::format("a list of {} numbers", layers), json::value(list->size()));
  for (std::uint64_t i = 0; i < layers; ++i) {
    BOOST_OUTCOME_TRY(counts.emplace_back(), count_of(list ? (*list)[i] : value, name, kMaxElements));
  }
  return counts;
}

Result<KeyValueCache> cache_of(const json::value& value, std::uint64_t layers) {
  const auto member = [&](const char* name) {
    const json::value* const found = json_member(value, name);
    return found ? *found : json::value();
  };
  KeyValueCache cache;
  const json::value name = member("name");
  cache.name = json_text(name).value_or("cache");
  BOOST_OUTCOME_TRY(const auto cells, counts_of(member("cells"), "cells", layers));
  BOOST_OUTCOME_TRY(const auto keys, counts_of(member("keys"), "keys", layers));
  BOOST_OUTCOME_TRY(const auto values, counts_of(member("values"), "values", layers));
  for (std::uint64_t i = 0; i < layers; ++i) cache.layers.push_back({cells[i], keys[i], values[i]});
  return cache;
}

// Refuses a model whose attention layers have no cache because their number of heads is missing.
Status check_heads(const Metadata& metadata, const std::string& architecture, const RunMemory& memory,
                   Evaluation& evaluation) {
  const std::string key = architecture + ".attention.head_count";
  if (metadata.find(key) || memory.caches.empty()) return ok();
  BOOST_OUTCOME_TRY(const json::value recurrent, evaluation.value("recurrent"));
  for (std::uint64_t i = 0; i < memory.used_layers; ++i) {
    const json::array* const list = recurrent.if_array();
    if (is_true(list && i < list->size() ? (*list)[i] : recurrent)) continue;
    const auto is_empty = [&](const KeyValueCache& cache) {
      return cache.layers[i].keys + cache.layers[i].values == 0;
    };
    if (std::ranges::all_of(memory.caches, is_empty))
      return input_error({},
                         fmt::format("the metadata has no usable '{}', so the size of the KV cache is unknown", key),
                         kOnlyLanguageModels);
  }
  return ok();
}

}  // namespace

Result<RunMemory> run_memory(const Metadata& metadata, const RunSettings& settings, const AddedMaps& added) {
  const MetadataValue* const named = metadata.find("general.architecture");
  const std::string architecture(named ? as_string(*named).value_or("") : "");
  if (architecture.empty())
    return input_error({}, "general.architecture, which names the kind of model, is missing", kOnlyLanguageModels);
  const MetadataValue* const kind = metadata.find("general.type");
  if (const std::string text(kind ? as_string(*kind).value_or("model") : "model"); text != "model")
    return input_error({}, fmt::format("the file is not a whole model: general.type is {}", quoted_name(text)),
                       kOnlyLanguageModels);
  BOOST_OUTCOME_TRY(Architecture shared, read_architecture(kFormulas));
  Formulas formulas = std::move(shared.memory);
  BOOST_OUTCOME_TRY(const MapOfModel found, map_of_model(architecture, added));
  const std::string& map = found.place;
  if (!map.empty()) {
    BOOST_OUTCOME_TRY(Architecture own, read_architecture(map, {}, added));
    for (auto& [name, formula] : own.memory) formulas.insert_or_assign(name, std::move(formula));
  }
  Evaluation evaluation(formulas, architecture, object_of(metadata, architecture));
  evaluation.set("context", (settings.context + kContextStep - 1) / kContextStep * kContextStep);
  evaluation.set("batch", std::min(settings.batch, settings.context));
  evaluation.set("flash_attention", settings.flash_attention);
  evaluation.set("vocabulary", settings.vocabulary);
  const auto count = [&](const char* name, std::uint64_t most) -> Result<std::uint64_t> {
    BOOST_OUTCOME_TRY(const json::value value, evaluation.value(name));
    return count_of(value, name, most);
  };
  RunMemory memory;
  memory.is_known = !map.empty();
  BOOST_OUTCOME_TRY(memory.layers, count("block_count", kMaxLayers));
  if (memory.layers == 0)
    return input_error({}, fmt::format("the model has no layers: {}.block_count is 0", architecture),
                       kOnlyLanguageModels);
  BOOST_OUTCOME_TRY(memory.used_layers, count("used_layers", memory.layers));
  BOOST_OUTCOME_TRY(const json::value caches, evaluation.value("caches"));
  if (!caches.is_array()) return wrong_formula("caches", "a list", caches);
  for (const json::value& each : caches.get_array()) {
    BOOST_OUTCOME_TRY(memory.caches.emplace_back(), cache_of(each, memory.layers));
  }
  BOOST_OUTCOME_TRY(check_heads(metadata, architecture, memory, evaluation));
  BOOST_OUTCOME_TRY(const json::value states, evaluation.value("states"));
  BOOST_OUTCOME_TRY(memory.states, counts_of(states, "states", memory.layers));
  for (std::uint64_t& each : memory.states) each *= sizeof(float);
  BOOST_OUTCOME_TRY(const json::value compute, evaluation.value("compute"));
  BOOST_OUTCOME_TRY(memory.compute, count_of(compute, "compute", kMaxElements * sizeof(float)));
  BOOST_OUTCOME_TRY(const json::value copies, evaluation.value("copies_embedding"));
  memory.copies_embedding = is_true(copies);
  BOOST_OUTCOME_TRY(const json::value types, evaluation.value("cache_types"));
  if (types.is_array())
    for (const json::value& each : types.get_array()) memory.cache_types.emplace_back(json_text(each).value_or(""));
  return memory;
}

}  // namespace ggufmill::huggingface
