#include "stages/huggingface/checkpoint/quantized_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/compressed_tensors.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Takes `quantized_layers`, with the names that the modules have among the tensors.
Status read_layers(const json::value& layers, const DecodeOptions& options, QuantizedTensors& checkpoint) {
  std::set<std::string_view> modules;
  for (const NamedTensor& tensor : checkpoint.tensors)
    for (std::string_view name = tensor.name; name.find('.') != name.npos;)
      modules.insert(name = name.substr(0, name.rfind('.')));
  for (const auto& [given, entry] : layers.get_object()) {
    if (!entry.is_object()) continue;
    std::optional<std::string> module = std::string(given);
    if (options.rename) {
      BOOST_OUTCOME_TRY(module, options.rename(*module));
      if (!module) continue;
    }
    if (!modules.contains(*module))
      return checkpoint.fault(
          fmt::format("'quantized_layers' has {}, but the checkpoint has no such module", quoted_name(given)),
          "correct the name, or remove the entry");
    checkpoint.layers[*module] = entry;
  }
  return ok();
}

// Reads the method and the algorithms from config.json, or from hf_quant_config.json beside it.
Status read_method(const json::object& config, const DecodeOptions& options, QuantizedTensors& checkpoint) {
  if (const json::value* quantization = config.if_contains("quantization_config");
      quantization && quantization->is_object())
    checkpoint.config = *quantization;
  else
    checkpoint.config.emplace_object();
  checkpoint.method = json_string(checkpoint.config, "quant_method").value_or("");
  // Mistral's params.json has its own form.
  if (const json::value* own = config.if_contains("quantization"); own && checkpoint.method.empty())
    if (json_string(*own, "qformat_weight") == "fp8_e4m3") checkpoint.method = "fp8";
  checkpoint.algorithm = json_string(checkpoint.config, "quant_algo").value_or("");
  json::value layers;
  if (const json::value* const own = json_member(checkpoint.config, "quantized_layers")) layers = *own;
  const auto file = checkpoint.folder / "hf_quant_config.json";
  const bool is_complete = !checkpoint.algorithm.empty() && layers.is_object() && !layers.get_object().empty();
  if (!is_complete && is_file(file)) {
    BOOST_OUTCOME_TRY(const json::value other, read_checkpoint_json(file.string()));
    if (const json::value* const quantization = json_member(other, "quantization")) {
      checkpoint.algorithm = json_string(*quantization, "quant_algo").value_or(checkpoint.algorithm);
      if (const json::value* const own = json_member(*quantization, "quantized_layers")) layers = *own;
    }
    const json::value* const producer = json_member(other, "producer");
    if (checkpoint.method.empty() && producer) checkpoint.method = json_string(*producer, "name").value_or("");
  }
  return layers.is_object() ? read_layers(layers, options, checkpoint) : ok();
}

bool has_nvfp4(const QuantizedTensors& checkpoint) {
  const auto is_nvfp4 = [](std::string_view algorithm) { return algorithm.ends_with("NVFP4"); };
  return is_nvfp4(checkpoint.algorithm) || std::ranges::any_of(checkpoint.layers, [&](const auto& layer) {
           return is_nvfp4(json_string(layer.second, "quant_algo").value_or(""));
         });
}

// Returns the number of bits that a member of the configuration states, at any depth; 0 if none does.
std::int64_t bits_in(const json::value& config) {
  if (!config.is_object()) return 0;
  for (const char* const name : {"bits", "nbits", "w_bit", "num_bits", "wbits", "weight_bits", "nbits_per_codebook"})
    if (const json::value* const bits = json_member(config, name); bits && bits->is_int64()) return bits->get_int64();
  for (const auto& [name, value] : config.get_object())
    if (const std::int64_t bits = bits_in(value)) return bits;
  return 0;
}

// A method of `quantization_config`.
struct Method {
  std::string_view name;
  Status (*decode)(QuantizedTensors&);  // null: its weights are known by their tensors, whatever the method
};
constexpr std::string_view kCompressedTensors = "compressed-tensors", kMxfp4 = "mxfp4";
constexpr Method kMethods[] = {
    {"fp8", decode_fp8},           {kMxfp4, nullptr},     {"modelopt", decode_modelopt},
    {kCompressedTensors, nullptr}, {"gptq", decode_gptq}, {"awq", decode_awq},
    {"bitnet", decode_bitnet},     {"mlx", nullptr},      {"bitsandbytes", nullptr},
};

Error unknown_method(const QuantizedTensors& checkpoint) {
  const std::int64_t bits = bits_in(checkpoint.config);
  const auto codes = std::ranges::find_if(checkpoint.tensors, [](const NamedTensor& tensor) {
    return tensor.values->shape.rank >= 2 && tensor.values->type->type_class == TypeClass::kInteger;
  });
  std::vector<std::string_view> names;
  for (const Method& method : kMethods) names.push_back(method.name);
  return checkpoint.fault(
      fmt::format("unknown quantization method {}{}{}", quoted_name(checkpoint.method),
                  bits != 0 ? fmt::format(" with {} bits", bits) : "",
                  codes == checkpoint.tensors.end()
                      ? ""
                      : fmt::format("; tensor {} is {}", quoted_name(codes->name), codes->values->type->name)),
      fmt::format("convert the original that this checkpoint was made from, or write its weights with the tool that "
                  "quantized it, and convert the result; supported are {}",
                  fmt::join(names, ", ")));
}

// `groups`: of compressed-tensors.
Status decode(QuantizedTensors& checkpoint, const CompressedGroups* groups) {
  if (checkpoint.method.empty()) return ok();
  if (groups) return decode_compressed(checkpoint, *groups);
  const auto method = std::ranges::find(kMethods, checkpoint.method, &Method::name);
  if (method == std::end(kMethods)) return unknown_method(checkpoint);
  return method->decode ? method->decode(checkpoint) : ok();
}

}  // namespace

Result<DecodedCheckpoint> decode_checkpoint(const fs::path& folder, const json::object& config,
                                            std::vector<NamedTensor> tensors, const DecodeOptions& options) {
  QuantizedTensors checkpoint(folder, std::move(tensors));
  checkpoint.sharded = options.sharded;
  BOOST_OUTCOME_TRY(read_method(config, options, checkpoint));
  DecodedCheckpoint result;
  result.is_mxfp4 = checkpoint.method == kMxfp4;
  result.is_nvfp4 = has_nvfp4(checkpoint);
  std::optional<CompressedGroups> compressed;
  if (checkpoint.method == kCompressedTensors) {
    auto groups = CompressedGroups::read(checkpoint.config);
    if (!groups) return checkpoint.fault(groups.error().what);
    compressed = std::move(groups).value();
    result.is_nvfp4 = compressed->have_format(kNvfp4Format);
  }
  const CompressedGroups* const groups = compressed ? &*compressed : nullptr;
  BOOST_OUTCOME_TRY(decode_e8m0(checkpoint));
  BOOST_OUTCOME_TRY(decode_mlx(checkpoint, config, options));
  BOOST_OUTCOME_TRY(split_mlx_experts(checkpoint));
  BOOST_OUTCOME_TRY(decode_bitsandbytes(checkpoint));
  BOOST_OUTCOME_TRY(result.block_type, read_ggml_blocks(checkpoint, options.blocks));
  if (groups) {
    BOOST_OUTCOME_TRY(repack_compressed_mxfp4(checkpoint, *groups));
  }
  result.has_mxfp4 = checkpoint.has_mxfp4;
  if (result.is_nvfp4) {
    BOOST_OUTCOME_TRY(repack_nvfp4(checkpoint, groups));
  }
  if (!result.is_mxfp4) {
    BOOST_OUTCOME_TRY(decode(checkpoint, groups));
  }
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i)
    if (!checkpoint.skipped.contains(i)) result.tensors.push_back(std::move(checkpoint.tensors[i]));
  std::ranges::move(checkpoint.made, std::back_inserter(result.tensors));
  return result;
}

}  // namespace ggufmill::huggingface
