#include "stages/huggingface/converted_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "pipeline/core/adapter.h"
#include "pipeline/core/text.h"

namespace ggufmill::huggingface {
namespace {

// Returns the number in "blk.17.ffn_norm.weight"; 0 if there is none.
std::uint64_t layer_of(std::string_view name) {
  std::uint64_t layer = 0;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

std::string_view stored_type(const MappedTensor& tensor) {
  return tensor.was_fp8 ? "FP8" : tensor.stored ? tensor.stored->name : "";
}

// Returns the type that the reference gives to the tensor.
Result<const TypeInfo*> type_of(const MappedTensor& tensor, const TensorTypes& types, const Facts& facts) {
  const TypeInfo& f32 = type_named("F32");
  const Expression& values = *tensor.values;
  if (values.type->is_quantized()) return values.type;                        // repacked, not converted
  if (values.type->name == "I64" && !values.as_extent()) return values.type;  // ids that an operation computed
  if (values.shape.rank <= 1 || tensor.name.ends_with("_norm.weight")) return &f32;
  const bool ternary = types.out_type == OutType::kTq1_0 || types.out_type == OutType::kTq2_0;
  const TypeInfo* type = nullptr;
  for (const TypeRule& rule : types.architecture.types) {
    if ((rule.only_ternary && !ternary) || (rule.only_f16 && types.out_type != OutType::kF16)) continue;
    if (!rule.stored.empty() && rule.stored != stored_type(tensor)) continue;
    BOOST_OUTCOME_TRY(const bool fits, rule.match.matches(tensor.name));
    if (!fits) continue;
    if (rule.from_layer) {
      BOOST_OUTCOME_TRY(const std::uint64_t from, facts.count(*rule.from_layer, "a number of layers"));
      if (layer_of(tensor.name) < from) continue;
    }
    BOOST_OUTCOME_TRY(const bool holds, facts.holds(rule.when));
    if (!holds) continue;
    type = rule.type ? rule.type : &tensor_type_of(types.out_type);
    break;
  }
  if (!type && types.fp8_as_q8_0 && tensor.was_fp8) type = &type_named("Q8_0");
  const auto ends_with = [&](std::string_view ending) { return tensor.name.ends_with(ending); };
  if (!type && !ends_with(".weight") && !ends_with(kLoraA) && !ends_with(kLoraB)) type = &f32;
  if (!type) type = &tensor_type_of(types.out_type);
  return type;
}

}  // namespace

const TypeInfo& tensor_type_of(OutType type) { return *Types().find(out_type_name(type)); }

OutType guess_type(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.values->shape.rank < 2) continue;
    if (tensor.values->type->name == "BF16") return OutType::kBf16;
    if (tensor.values->type->name == "F16") return OutType::kF16;
  }
  return OutType::kF16;
}

Status fuse_experts(std::vector<MappedTensor>& tensors, const Architecture& architecture, const Origin& origin) {
  constexpr std::string_view kGate = "ffn_gate_exps.", kUp = "ffn_up_exps.";
  const auto place = [&](std::string name, std::string_view from, std::string_view to) {
    name.replace(name.find(from), from.size(), to);
    return std::ranges::find(tensors, name, &MappedTensor::name) - tensors.begin();
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = tensors[i].name;
    if (name.find(kGate) == std::string::npos || !name.ends_with(".weight")) continue;
    const auto up = static_cast<std::size_t>(place(name, kGate, kUp));
    if (up == tensors.size()) continue;
    if (!architecture.fused_experts)
      return error_at(
          origin,
          fmt::format(
              "fuse_gate_up_experts is not possible: llama.cpp has no tensor for fused gate and up experts in '{}'",
              architecture.name),
          "omit the option");
    const std::size_t later = std::max(i, up), earlier = std::min(i, up);
    MappedTensor fused = tensors[later];
    fused.name.replace(fused.name.find(later == i ? kGate : kUp), (later == i ? kGate : kUp).size(),
                       "ffn_gate_up_exps.");
    BOOST_OUTCOME_TRY(fused.values, expressions::concat({tensors[i].values, tensors[up].values}, 1));
    tensors[later] = std::move(fused);
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(earlier));
    if (earlier <= i) --i;
  }
  return ok();
}

Status fuse_qkv(std::vector<MappedTensor>& tensors, std::uint64_t count_of_layers) {
  constexpr std::string_view kParts[] = {"attn_q", "attn_k", "attn_v"};
  using Places = std::array<std::optional<std::size_t>, std::size(kParts)>;
  std::map<std::uint64_t, std::array<Places, 2>> layers;  // places of the weights, then of the biases
  const auto name_of = [](std::uint64_t layer, std::string_view part, bool bias) {
    return fmt::format("blk.{}.{}.{}", layer, part, bias ? "bias" : "weight");
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const MappedTensor& tensor = tensors[i];
    if (!tensor.is_whole || tensor.values->type->is_quantized()) continue;
    const std::uint64_t layer = layer_of(tensor.name);
    if (layer >= count_of_layers) continue;
    for (std::size_t part = 0; part < std::size(kParts); ++part)
      for (const bool bias : {false, true})
        if (tensor.name == name_of(layer, kParts[part], bias)) layers[layer][bias][part] = i;
  }
  const auto count = [](const Places& places) {
    return std::ranges::count_if(places, [](const auto& place) { return place.has_value(); });
  };
  std::set<std::size_t> merged;
  for (const auto& [layer, places] : layers) {
    const auto biases = count(places[1]);
    if (count(places[0]) != std::ssize(kParts) || (biases != 0 && biases != std::ssize(kParts))) continue;
    for (const bool bias : {false, true}) {
      if (bias && biases == 0) continue;
      std::vector<ExpressionRef> rows;
      std::size_t last = 0;
      for (const auto& place : places[bias]) {
        rows.push_back(tensors[*place].values);
        last = std::max(last, *place);
      }
      if (!std::ranges::all_of(rows, [&](const ExpressionRef& each) { return each->type == rows[0]->type; }))
        for (ExpressionRef& each : rows) {
          BOOST_OUTCOME_TRY(each, to_type(std::move(each), "F32"));
        }
      const std::uint32_t axis = rows[0]->shape.rank - 1;
      BOOST_OUTCOME_TRY(tensors[last].values, expressions::concat(std::move(rows), axis));
      tensors[last].name = name_of(layer, "attn_qkv", bias);
      for (const auto& place : places[bias])
        if (*place != last) merged.insert(*place);
    }
  }
  std::size_t index = 0;
  std::erase_if(tensors, [&](const MappedTensor&) { return merged.contains(index++); });
  return ok();
}

Result<Tensor> converted_tensor(MappedTensor mapped, const TensorTypes& types, const Facts& facts,
                                const std::string& folder) {
  BOOST_OUTCOME_TRY(const TypeInfo* const wanted, type_of(mapped, types, facts));
  const bool fits = mapped.values->shape.columns() % wanted->block_elements == 0;
  const TypeInfo* type = fits ? wanted : &type_named("F16");
  auto values = expressions::cast(std::move(mapped.values), *type);
  if (!values) return input_error(folder, fmt::format("tensor {}: {}", quoted_name(mapped.name), values.error().what));
  Tensor tensor;
  tensor.name = std::move(mapped.name);
  tensor.expression = std::move(values).value();
  tensor.type = type;
  if (!fits) tensor.fallback_from = wanted;
  return tensor;
}

}  // namespace ggufmill::huggingface
