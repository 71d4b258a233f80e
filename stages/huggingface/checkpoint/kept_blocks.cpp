// Weights whose blocks are not decoded: GGML blocks, and blocks that are repacked in GGUF's layout.

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/checkpoint/compressed_tensors.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kMixedPrecision = "MIXED_PRECISION";  // of ModelOpt: each layer has its own algorithm

// Returns the name of the algorithm with which a module is quantized, and the object that describes it.
std::pair<std::string_view, const json::value*> algorithm_of(const QuantizedTensors& checkpoint,
                                                             std::string_view module) {
  if (checkpoint.algorithm != kMixedPrecision || checkpoint.layers.empty())
    return {checkpoint.algorithm, &checkpoint.config};
  const json::value* const layer = layer_entry(checkpoint, module);
  if (!layer) return {};
  return {json_string(*layer, "quant_algo").value_or(""), layer};
}

// Returns true if the weights were quantized for activations that are not. All experts of a layer count as one module.
bool is_weights_only(const QuantizedTensors& checkpoint, std::string module) {
  constexpr std::string_view kExperts = ".experts.";
  if (const std::size_t at = module.find(kExperts); at != module.npos) {
    const std::size_t number = at + kExperts.size(), end = module.find('.', number);
    if (end != module.npos && module.find_first_not_of("0123456789", number) == end)
      module.erase(number, end + 1 - number);
  }
  const json::value* const layer = layer_entry(checkpoint, module);
  return (layer ? json_string(*layer, "quant_algo").value_or("") : checkpoint.algorithm) == "W4A16_NVFP4";
}

Status check_block_size(const QuantizedTensors& checkpoint, const json::value& details, std::string_view member,
                        std::uint64_t expected, const TypeInfo& type) {
  const json::value* const size = json_member(details, member);
  if (!size || (size->is_int64() && size->get_int64() == static_cast<std::int64_t>(expected))) return ok();
  return checkpoint.fault(fmt::format("'{}' in the quantization config is {}, but that of {} is {}", member,
                                      json::serialize(*size), type.name, expected));
}

Result<ExpressionRef> ggml_blocks(const ExpressionRef& bytes, const TypeInfo& type) {
  Shape shape = bytes->shape;
  if (shape.rank < 3 || shape.dims[0] != type.block_bytes)
    return input_error({}, fmt::format("{} of U8 is not rows of {} blocks, which have {} bytes", describe(shape),
                                       type.name, type.block_bytes));
  for (std::uint32_t d = 1; d < shape.rank; ++d) shape.dims[d - 1] = shape.dims[d];
  shape.dims[--shape.rank] = 1;
  if (__builtin_mul_overflow(shape.dims[0], std::uint64_t{type.block_elements}, &shape.dims[0]))
    return input_error({}, "its rows are too long");
  return as_type(bytes, type.name, shape);
}

ExpressionRef one_number(float value) {
  return expressions::constant(Shape{1, {1, 1, 1, 1}}, {value}).value();  // one value for one element
}

Status add_beside(QuantizedTensors& checkpoint, NamedTensor& tensor, std::string ending, const std::string& name,
                  bool reciprocal) {
  float value = 1;
  if (const auto found = checkpoint.places.find(name); found != checkpoint.places.end()) {
    checkpoint.skipped.insert(found->second);
    BOOST_OUTCOME_TRY(value, checkpoint.of_tensor(name, read_scale(*checkpoint.tensors[found->second].values)));
    if (reciprocal) value = showing_nonfinite(1.0f / value, {value});
  }
  tensor.beside.emplace_back(std::move(ending), one_number(value));
  return ok();
}

Result<ExpressionRef> nvfp4(const ExpressionRef& pairs, const ExpressionRef& scales) {
  BOOST_OUTCOME_TRY(ExpressionRef bytes, as_type(pairs, "I8", pairs->shape));
  BOOST_OUTCOME_TRY(ExpressionRef codes, as_type(scales, "I8", scales->shape));
  return expressions::repack(*find_repack_function("nvfp4"), std::move(bytes), std::move(codes));
}

}  // namespace

// Reinterprets the bytes of GGML blocks: {bytes of a block, blocks, rows}, whose type is the algorithm's name.
Result<const TypeInfo*> read_ggml_blocks(QuantizedTensors& checkpoint, Blocks blocks) {
  const TypeInfo* first = nullptr;
  if (checkpoint.method != "modelopt") return first;
  const Types types;
  const bool all_packed = json_string(checkpoint.config, "packing").value_or("") == "ggml";
  for (NamedTensor& tensor : checkpoint.tensors) {
    if (!tensor.name.ends_with(".weight") || tensor.values->type->name != "U8") continue;
    const auto [algorithm, details] =
        algorithm_of(checkpoint, std::string_view(tensor.name).substr(0, tensor.name.size() - 7));
    if (algorithm == "NVFP4" || algorithm == "MXFP4") continue;  // in layouts of their own, not as blocks
    const TypeInfo* const type = types.find(algorithm);
    if (!type || !type->is_quantized()) {
      if (!all_packed) continue;
      return checkpoint.fault(
          fmt::format("{} is not a type of GGML blocks", quoted_name(algorithm)),
          "`quant_algo` names the type of weights with `packing: ggml`; `ggufmill types` lists the types");
    }
    BOOST_OUTCOME_TRY(check_block_size(checkpoint, *details, "group_size", type->block_elements, *type));
    BOOST_OUTCOME_TRY(check_block_size(checkpoint, *details, "block_payload_bytes", type->block_bytes, *type));
    BOOST_OUTCOME_TRY(tensor.values, checkpoint.of_tensor(tensor.name, ggml_blocks(tensor.values, *type)));
    if (blocks == Blocks::kDecode) {
      BOOST_OUTCOME_TRY(tensor.values, to_type(std::move(tensor.values), "F32"));
    }
    if (!first) first = type;
  }
  return first;
}

Status repack_mxfp4(QuantizedTensors& checkpoint, NamedTensor& weight, std::size_t scales) {
  BOOST_OUTCOME_TRY(weight.values,
                    checkpoint.of_tensor(weight.name, expressions::repack(*find_repack_function("mxfp4"), weight.values,
                                                                          checkpoint.tensors[scales].values)));
  checkpoint.skipped.insert(scales);
  checkpoint.has_mxfp4 = true;
  return ok();
}

// Repacks blocks of 16 with an 8-bit scale each and one scale for the tensor as GGUF's super-blocks, with the
// tensor's scale as a separate tensor. compressed-tensors uses other names, and stores the reciprocals of the
// tensor's scales.
Status repack_nvfp4(QuantizedTensors& checkpoint, const CompressedGroups* groups) {
  const bool compressed = groups != nullptr;
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name, ending = compressed ? ".weight_packed" : ".weight";
    if (!name.ends_with(ending)) {
      if (name.ends_with(".k_scale") || name.ends_with(".v_scale")) checkpoint.skipped.insert(i);
      continue;
    }
    const std::string base = name.substr(0, name.size() - ending.size());
    if (compressed) {
      BOOST_OUTCOME_TRY(const CompressedGroup* const group, group_of(checkpoint, *groups, base));
      if (group->format != kNvfp4Format) continue;
    }
    const auto scales = checkpoint.places.find(base + ".weight_scale");
    if (scales == checkpoint.places.end() || checkpoint.tensors[scales->second].values->shape.rank < 2) continue;
    NamedTensor& tensor = checkpoint.tensors[i];
    if (tensor.values->type->name.starts_with("F8_")) continue;
    checkpoint.skipped.insert(scales->second);
    BOOST_OUTCOME_TRY(tensor.values,
                      checkpoint.of_tensor(name, nvfp4(tensor.values, checkpoint.tensors[scales->second].values)));
    tensor.name = base + ".weight";
    tensor.first = true;
    tensor.weights_only = !compressed && is_weights_only(checkpoint, base);
    BOOST_OUTCOME_TRY(add_beside(checkpoint, tensor, ".scale",
                                 base + (compressed ? ".weight_global_scale" : ".weight_scale_2"), compressed));
    BOOST_OUTCOME_TRY(add_beside(checkpoint, tensor, ".input_scale",
                                 base + (compressed ? ".input_global_scale" : ".input_scale"), compressed));
  }
  return ok();
}

}  // namespace ggufmill::huggingface
