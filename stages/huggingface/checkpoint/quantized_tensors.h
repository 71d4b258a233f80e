#pragma once
// The tensors of a checkpoint with quantized weights while they are decoded, and the formats of such weights. Each
// format decodes or repacks its own weights in place, and ignores the others. See quantized_checkpoint.h.

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/quantized_checkpoint.h"

namespace ggufmill::huggingface {

class CompressedGroups;

struct QuantizedTensors {
  QuantizedTensors(fs::path folder, std::vector<NamedTensor> tensors);

  // Returns an error about config.json.
  Error fault(std::string what, std::string help = {}) const;
  // Adds the name of a tensor to an error.
  template <class T>
  Result<T> of_tensor(const std::string& name, Result<T> result) const {
    if (!result) result = of_tensor(name, std::move(result).error());
    return result;
  }
  Error of_tensor(const std::string& name, Error error) const;
  // Returns the place of a tensor that belongs to a quantized weight.
  Result<std::size_t> place_of(const std::string& name) const;
  // Returns the place of the weight that has these scales.
  Result<std::size_t> weight_of(const std::string& weight, std::size_t scales) const;
  // Returns the values of a tensor that belongs to a quantized weight, and omits the tensor from the result.
  Result<ExpressionRef> values_of(const std::string& name);
  // Appends a tensor to the result.
  void make(std::string name, ExpressionRef values);

  fs::path folder;
  std::vector<NamedTensor> tensors;
  std::unordered_map<std::string, std::size_t> places;   // by name
  std::set<std::size_t> skipped;                         // places of tensors that are not part of the result
  std::vector<NamedTensor> made;                         // newly assembled
  boost::json::value config;                             // quantization_config; an empty object if there is none
  std::map<std::string, boost::json::value> layers;      // `quantized_layers`: by module, named as in `tensors`
  std::unordered_map<std::string, ShardedRows> sharded;  // see DecodeOptions
  std::string method, algorithm;                         // quant_method, quant_algo
  bool has_mxfp4 = false;                                // weights were repacked as MXFP4
};

// Returns the entry in `quantized_layers` for a module or the nearest one that contains it; null if there is none.
const boost::json::value* layer_entry(const QuantizedTensors& checkpoint, std::string_view module);

// 8-bit numbers with scales.
Status decode_fp8(QuantizedTensors& checkpoint);
Status decode_modelopt(QuantizedTensors& checkpoint);
// Weights X.weight with scales X.scale that are powers of two.
Status decode_e8m0(QuantizedTensors& checkpoint);
// Multiplies weights by their scales: one for each block of `block` (rows, columns), for each row, or for the whole
// tensor.
Status apply_scales(QuantizedTensors& checkpoint, std::size_t scales, const std::string& weight_name,
                    const boost::json::array* block);

// Integers of 2, 4 or 8 bits in 32-bit words.
Status decode_gptq(QuantizedTensors& checkpoint);
Status decode_awq(QuantizedTensors& checkpoint);
// Reads the packing of 2-, 4- or 8-bit integers in 32-bit words, lowest bits first: "U2", "U4" or "U8", and the
// number of integers per word.
Result<std::pair<std::string_view, std::uint64_t>> word_packing(const QuantizedTensors& checkpoint,
                                                                const boost::json::value& config,
                                                                std::string_view name);
// Unpacks 32-bit words to F32 integers: {columns, rows} becomes {in_word, columns, rows}.
Result<ExpressionRef> unpack_words(const ExpressionRef& words, std::string_view type, std::uint64_t in_word);

// The groups of compressed-tensors, each with a format of its own.
Status decode_compressed(QuantizedTensors& checkpoint, const CompressedGroups& groups);
// Repacks the weights of groups in MXFP4.
Status repack_compressed_mxfp4(QuantizedTensors& checkpoint, const CompressedGroups& groups);

// Blocks that are kept, in GGUF's layout. read_ggml_blocks() returns the type of the first weight that is stored as
// GGML blocks, or null.
Result<const TypeInfo*> read_ggml_blocks(QuantizedTensors& checkpoint, Blocks blocks);
Status repack_mxfp4(QuantizedTensors& checkpoint, NamedTensor& weight, std::size_t scales);
// `groups`: of compressed-tensors, whose tensors have names of their own; null otherwise.
Status repack_nvfp4(QuantizedTensors& checkpoint, const CompressedGroups* groups);

// Codes of MLX, and of bitsandbytes. `config`: config.json.
Status decode_mlx(QuantizedTensors& checkpoint, const boost::json::object& config, const DecodeOptions& options);
// Divides the experts of MLX, quantized or not, as transformers does. They come after the other tensors.
Status split_mlx_experts(QuantizedTensors& checkpoint);
Status decode_bitsandbytes(QuantizedTensors& checkpoint);

// Packed ternary weights.
Status decode_bitnet(QuantizedTensors& checkpoint);

// Reads a scale that consists of one number. Errors carry no tensor name.
Result<float> read_scale(const Expression& tensor);
// Reinterprets the bytes as another type. Errors carry no tensor name.
Result<ExpressionRef> as_type(const ExpressionRef& tensor, std::string_view type, const Shape& shape);
// Reads the numbers of a small tensor that must have this type. Errors carry no tensor name.
template <class Number>
Result<std::vector<Number>> read_numbers(const Expression& tensor, std::string_view type) {
  if (tensor.type->name != type) return input_error({}, fmt::format("is {}, not {}", tensor.type->name, type));
  BOOST_OUTCOME_TRY(const auto bytes, read_small_tensor(tensor));
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

}  // namespace ggufmill::huggingface
