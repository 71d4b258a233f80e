#include "stages/huggingface/checkpoint/quantized_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/compressed_tensors.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Reads the method and the algorithm from config.json, or from hf_quant_config.json beside it.
Status read_method(const json::object& config, QuantizedTensors& checkpoint) {
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
  const auto file = checkpoint.folder / "hf_quant_config.json";
  if (!checkpoint.algorithm.empty() || !is_file(file)) return ok();
  BOOST_OUTCOME_TRY(const json::value other, read_checkpoint_json(file.string()));
  const json::value *quantization = json_member(other, "quantization"), *producer = json_member(other, "producer");
  if (quantization) checkpoint.algorithm = json_string(*quantization, "quant_algo").value_or("");
  if (checkpoint.method.empty() && producer) checkpoint.method = json_string(*producer, "name").value_or("");
  return ok();
}

// `groups`: of compressed-tensors.
Status decode(QuantizedTensors& checkpoint, const CompressedGroups* groups) {
  const std::string& method = checkpoint.method;
  if (method.empty()) return ok();
  if (method == "fp8") return decode_fp8(checkpoint);
  if (groups) return decode_compressed(checkpoint, *groups);
  if (method == "modelopt") return decode_modelopt(checkpoint);
  if (method == "gptq") return decode_gptq(checkpoint);
  if (method == "awq") return decode_awq(checkpoint);
  if (method == "bitnet") return decode_bitnet(checkpoint);
  return checkpoint.fault(
      fmt::format("unknown quantization method {}", quoted_name(method)),
      "supported are fp8, mxfp4, modelopt, compressed-tensors, gptq, awq, and bitnet, and checkpoints that "
      "are not quantized");
}

}  // namespace

Result<DecodedCheckpoint> decode_checkpoint(const fs::path& folder, const json::object& config,
                                            std::vector<NamedTensor> tensors, Blocks blocks) {
  QuantizedTensors checkpoint(folder, std::move(tensors));
  BOOST_OUTCOME_TRY(read_method(config, checkpoint));
  DecodedCheckpoint result;
  result.is_mxfp4 = checkpoint.method == "mxfp4";
  result.is_nvfp4 = checkpoint.algorithm == "NVFP4" || checkpoint.algorithm == "W4A16_NVFP4";
  std::optional<CompressedGroups> compressed;
  if (checkpoint.method == "compressed-tensors") {
    auto groups = CompressedGroups::read(checkpoint.config);
    if (!groups) return checkpoint.fault(groups.error().what);
    compressed = std::move(groups).value();
    result.is_nvfp4 = compressed->have_format(kNvfp4Format);
  }
  const CompressedGroups* const groups = compressed ? &*compressed : nullptr;
  BOOST_OUTCOME_TRY(decode_e8m0(checkpoint));
  BOOST_OUTCOME_TRY(result.block_type, read_ggml_blocks(checkpoint, blocks));
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
