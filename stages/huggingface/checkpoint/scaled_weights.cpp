// Weights of 8 bits that are multiplied by scales.

#include <algorithm>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Rows and columns of the blocks that share an E8M0 scale.
constexpr std::uint64_t kE8m0Block = 128;

Result<ExpressionRef> scaled(const ExpressionRef& weights, const ExpressionRef& scales, const json::array* block) {
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(weights, "F32"));
  BOOST_OUTCOME_TRY(ExpressionRef factors, to_type(scales, "F32"));
  const Shape& shape = values->shape;
  std::uint64_t columns = shape.columns(), rows = 1;
  if (block && block->size() == 2 && block->at(0).is_int64() && block->at(1).is_int64()) {
    rows = static_cast<std::uint64_t>(std::max<std::int64_t>(block->at(0).get_int64(), 0));
    columns = static_cast<std::uint64_t>(std::max<std::int64_t>(block->at(1).get_int64(), 0));
    return expressions::scale_blocks(std::move(values), std::move(factors), columns, rows);
  }
  Shape needed = shape;
  needed.dims[0] = 1;
  if (factors->shape.elements() == 1) {
    rows = shape.dims[1];
    needed.dims[1] = 1;
    if (shape.elements() != shape.dims[0] * shape.dims[1])
      return input_error({}, "a tensor of more than two dimensions has a single scale");
  }
  BOOST_OUTCOME_TRY(factors, expressions::reshape(std::move(factors), needed));
  return expressions::scale_blocks(std::move(values), std::move(factors), columns, rows);
}

Result<ExpressionRef> scaled_by_exponents(const ExpressionRef& weights, const ExpressionRef& exponents) {
  constexpr float kBias = 127;
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(weights, "F32"));
  BOOST_OUTCOME_TRY(ExpressionRef factors, to_type(exponents, "F32"));
  BOOST_OUTCOME_TRY(factors, expressions::map(std::move(factors), *find_map_function("exp2"), -kBias));
  return expressions::scale_blocks(std::move(values), std::move(factors), kE8m0Block, kE8m0Block);
}

}  // namespace

Status apply_scales(QuantizedTensors& checkpoint, std::size_t scales, const std::string& weight_name,
                    const json::array* block) {
  BOOST_OUTCOME_TRY(const std::size_t place, checkpoint.weight_of(weight_name, scales));
  NamedTensor& weight = checkpoint.tensors[place];
  const bool was_fp8 = weight.values->type->name.starts_with("F8_");
  BOOST_OUTCOME_TRY(weight.values,
                    checkpoint.of_tensor(weight_name, scaled(weight.values, checkpoint.tensors[scales].values, block)));
  weight.was_fp8 = was_fp8;
  checkpoint.skipped.insert(scales);
  return ok();
}

// Applies the scales for blocks of rows and columns, `_scale_inv`. The scales of the activations are not used.
Status decode_fp8(QuantizedTensors& checkpoint) {
  const json::array* block = json_array(checkpoint.config, "weight_block_size");
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (name.ends_with("_scale_inv")) {
      BOOST_OUTCOME_TRY(apply_scales(checkpoint, i, name.substr(0, name.size() - 10), block));
    }
    if (name.ends_with(".qscale_weight")) {
      BOOST_OUTCOME_TRY(apply_scales(checkpoint, i, name.substr(0, name.size() - 13) + "weight", block));
    }
    if (name.ends_with(".activation_scale") || name.ends_with("_activation_scale") || name.ends_with(".qscale_act"))
      checkpoint.skipped.insert(i);
  }
  return ok();
}

// Decodes FP8 with one scale per row or per tensor; NVFP4 weights have already been repacked. The scales of the KV
// cache are not used.
Status decode_modelopt(QuantizedTensors& checkpoint) {
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (name.ends_with(".weight_scale") && !checkpoint.skipped.contains(i)) {
      if (checkpoint.places.contains(name.substr(0, name.size() - 6))) {
        BOOST_OUTCOME_TRY(apply_scales(checkpoint, i, name.substr(0, name.size() - 6), nullptr));
      }
      checkpoint.skipped.insert(i);
    }
    if (name.ends_with(".input_scale") || name.ends_with(".k_scale") || name.ends_with(".v_scale"))
      checkpoint.skipped.insert(i);
  }
  return ok();
}

// Applies scales that are powers of two, stored as X.scale beside X.weight: to blocks of FP8, or as the exponents of
// MXFP4, whose weights are bytes of two elements.
Status decode_e8m0(QuantizedTensors& checkpoint) {
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (!name.ends_with(".scale") || checkpoint.tensors[i].values->type->name != "U8") continue;
    const auto found = checkpoint.places.find(name.substr(0, name.size() - 5) + "weight");
    if (found == checkpoint.places.end()) continue;
    NamedTensor& weight = checkpoint.tensors[found->second];
    const std::string_view type = weight.values->type->name;
    if (type.starts_with("F8_")) {
      BOOST_OUTCOME_TRY(
          weight.values,
          checkpoint.of_tensor(weight.name, scaled_by_exponents(weight.values, checkpoint.tensors[i].values)));
      weight.was_fp8 = true;
      checkpoint.skipped.insert(i);
    } else if (type == "I8" || type == "U8") {
      BOOST_OUTCOME_TRY(repack_mxfp4(checkpoint, weight, i));
    }
  }
  return ok();
}

}  // namespace ggufmill::huggingface
