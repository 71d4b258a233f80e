#include "stages/quantize/stream_facts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipeline/core/importance.h"
#include "stages/quantize/facts.h"
#include "stages/quantize/small_values.h"

namespace ggufmill {
namespace {

// Returns the number under ARCH.`key` if it is greater than 0.
std::optional<double> scale_in(const Model& model, const std::string& architecture, const char* key) {
  const MetadataValue* value = model.metadata.find(architecture + "." + key);
  const auto number = value ? as_number(*value) : std::nullopt;
  return number && std::isfinite(*number) && *number > 0 ? number : std::nullopt;
}

bool is(const std::optional<Pattern>& pattern, const std::string& text) {
  if (!pattern) return false;
  const Result<bool> found = pattern->matches(text);
  return found && found.value();
}

// Returns true if the objective computes with the energy of a tensor of this name.
bool has_energy(const Objective& objective, const std::string& name) {
  if (!layer_of(name)) return is(objective.embedding, name);
  return std::ranges::any_of(objective.blocks, [&](const Objective::Block& block) { return is(block.writes, name); });
}

// Adds the energies of the norms behind a block's output. A norm scales what the block writes to a mean square of 1 in
// each column, and then each column by a weight.
Status add_norms(const Objective& objective, std::size_t block, const Model& model, StreamFacts& facts) {
  const Objective::Block& part = objective.blocks[block];
  if (!part.norm) return ok();
  std::map<std::uint64_t, const Tensor*> norms;  // by layer
  std::map<std::uint64_t, bool> is_behind;
  for (const Tensor& tensor : model.tensors) {
    const auto layer = layer_of(tensor.name);
    if (!layer) continue;
    if (is(part.norm, tensor.name)) norms.emplace(*layer, &tensor);
    if (!part.norm_with || is(part.norm_with, tensor.name)) is_behind[*layer] = true;
  }
  for (const auto& [layer, norm] : norms) {
    if (!is_behind[layer]) continue;
    auto values = read_small_values(*norm->expression);
    if (!values) {
      Error error = values.error();
      error.what = norm->name + ": " + error.what;
      return error;
    }
    double energy = 0;
    for (const float value : values.value()) energy += static_cast<double>(value) * static_cast<double>(value);
    if (std::isfinite(energy)) facts.norms[{layer, block}] = energy;
  }
  return ok();
}

// Adds up the sums of matrices, multiplied by `times`.
double weighted_sum(const std::vector<double>& sums, const std::vector<double>& times) {
  return std::inner_product(sums.begin(), sums.end(), times.begin(), 0.0);
}

bool has_sums_of(const MatrixSums& sums, std::size_t matrices, bool weighted) {
  return sums.plain.size() == matrices && (!weighted || sums.weighted.size() == matrices);
}

void weigh_by_use(const std::vector<std::int64_t>& tokens, double least_use, MeasuredTensor& tensor) {
  const bool is_whole = has_sums_of(tensor.matrices, tokens.size(), tensor.weighted) &&
                        std::ranges::all_of(tensor.types, [&](const MeasuredType& type) {
                          return has_sums_of(type.matrices, tokens.size(), tensor.weighted);
                        });
  const double all = std::accumulate(tokens.begin(), tokens.end(), 0.0);
  if (!is_whole || all <= 0) return;
  std::vector<double> times;
  for (const std::int64_t count : tokens)
    times.push_back(std::max(static_cast<double>(count) * static_cast<double>(tokens.size()) / all, least_use));
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  for (double& each : times) each /= mean;
  tensor.energy = weighted_sum(tensor.matrices.plain, times);
  if (tensor.weighted) tensor.weighted_energy = weighted_sum(tensor.matrices.weighted, times);
  for (MeasuredType& type : tensor.types) {
    type.error = weighted_sum(type.matrices.plain, times);
    if (tensor.weighted) type.weighted_error = weighted_sum(type.matrices.weighted, times);
  }
}

}  // namespace

Result<StreamFacts> stream_facts(const Objective& objective, const Model& model) {
  const std::string architecture = facts_of(model).architecture;
  StreamFacts facts;
  const auto number = [&](const char* key) {
    const MetadataValue* value = model.metadata.find(architecture + "." + key);
    return value ? as_unsigned(*value).value_or(0) : 0;
  };
  facts.experts_used = number("expert_used_count");
  const std::uint64_t layers = number("block_count"), extra = number("nextn_predict_layers");
  if (extra > 0 && layers >= extra) facts.first_extra_layer = layers - extra;
  // Weights that are not normalized sum to less than one; the scale compensates for that.
  const MetadataValue* norm = model.metadata.find(architecture + ".expert_weights_norm");
  if (norm && as_bool(*norm).value_or(false))
    facts.expert_scale = scale_in(model, architecture, "expert_weights_scale").value_or(1);
  const MetadataValue* width = model.metadata.find(architecture + ".embedding_length");
  if (const auto columns = width ? as_unsigned(*width) : std::nullopt;
      columns && is(objective.scaled_by_width, architecture))
    facts.embedding_scale = std::sqrt(static_cast<double>(*columns));
  else
    facts.embedding_scale = scale_in(model, architecture, "embedding_scale").value_or(1);
  if (is(objective.scaled_blocks, architecture))
    facts.block_scale = scale_in(model, architecture, "residual_scale").value_or(1);
  facts.has_output = std::ranges::any_of(
      model.tensors, [&](const Tensor& tensor) { return !layer_of(tensor.name) && is(objective.output, tensor.name); });
  for (std::size_t block = 0; block < objective.blocks.size(); ++block) {
    BOOST_OUTCOME_TRY(add_norms(objective, block, model, facts));
  }
  return facts;
}

std::vector<std::size_t> tensors_with_energy(const Objective& objective, const Model& model,
                                             const std::vector<std::size_t>& open) {
  std::vector<std::size_t> found;
  if (objective.kind != ObjectiveKind::kStream ||
      std::ranges::none_of(model.tensors, [](const Tensor& tensor) { return tensor.importance != nullptr; }))
    return found;
  std::vector<bool> is_open(model.tensors.size());
  for (const std::size_t i : open) is_open[i] = true;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const Tensor& tensor = model.tensors[i];
    const bool is_matrix = tensor.shape().rank >= 2 && tensor.name.ends_with(".weight") &&
                           tensor.source_type().type_class != TypeClass::kInteger;
    if (!is_open[i] && is_matrix && has_energy(objective, tensor.name)) found.push_back(i);
  }
  return found;
}

Measurement weighted_by_use(const Measurement& measurement, const Model& model, double least_use) {
  std::map<std::string_view, const Importance*> importance_of;
  for (const Tensor& tensor : model.tensors)
    if (tensor.importance && !tensor.importance->tokens.empty())
      importance_of.emplace(tensor.name, tensor.importance.get());
  Measurement weighted = measurement;
  for (MeasuredTensor& tensor : weighted.tensors) {
    const auto found = importance_of.find(tensor.name);
    if (found != importance_of.end()) weigh_by_use(found->second->tokens, least_use, tensor);
    tensor.matrices = {};
    for (MeasuredType& type : tensor.types) type.matrices = {};
  }
  return weighted;
}

bool is_little_known(const Objective& objective, const Tensor& tensor) {
  if (!objective.cautious || !layer_of(tensor.name)) return false;
  if (!tensor.importance) return true;
  const Importance& importance = *tensor.importance;
  const Objective::Caution& cautious = *objective.cautious;
  const auto rare = static_cast<std::size_t>(std::ranges::count_if(
      importance.tokens, [&](std::int64_t tokens) { return static_cast<double>(tokens) < cautious.tokens; }));
  const auto little = std::max(rare, importance.substituted.size());
  return static_cast<double>(little) > cautious.experts * static_cast<double>(importance.matrices);
}

}  // namespace ggufmill
