#include "stages/huggingface/checkpoint/quantized_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/compressed_groups.h"
#include "stages/huggingface/checkpoint/ternary.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kPackedFormat = "pack-quantized", kNvfp4Format = "nvfp4-pack-quantized",
                           kMxfp4Format = "mxfp4-pack-quantized";  // of groups
constexpr const char* kFormatsHelp =
    "supported are float-quantized, int-quantized, naive-quantized, pack-quantized, nvfp4-pack-quantized, and "
    "mxfp4-pack-quantized";
constexpr std::string_view kMixedPrecision = "MIXED_PRECISION";  // of ModelOpt: each layer has its own algorithm
// Of weights with scales of E8M0: rows and columns.
constexpr std::uint64_t kE8m0Block = 128;

template <class Number>
Result<std::vector<Number>> read_numbers(const Expression& tensor, std::string_view type) {
  if (tensor.type->name != type) return input_error({}, fmt::format("is {}, not {}", tensor.type->name, type));
  BOOST_OUTCOME_TRY(const auto bytes, read_small_tensor(tensor));
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

// Reads a scale that consists of one number.
Result<float> read_scale(const Expression& tensor) {
  BOOST_OUTCOME_TRY(const auto numbers, read_small_values(tensor));
  if (numbers.size() != 1) return input_error({}, fmt::format("has {} values, expected one", numbers.size()));
  return numbers[0];
}

ExpressionRef one_number(float value) {
  return expressions::constant(Shape{1, {1, 1, 1, 1}}, {value}).value();  // one value for one element
}

// Reinterprets the bytes as another type.
Result<ExpressionRef> as_type(const ExpressionRef& tensor, std::string_view type, const Shape& shape) {
  const Extent* extent = tensor->as_extent();
  if (!extent) return input_error({}, "is not a tensor in the file");
  return expressions::extent(type_named(type), shape, *extent);
}

class Decoder {
 public:
  Decoder(const std::filesystem::path& folder, const json::object& config, std::vector<NamedTensor> tensors,
          Blocks blocks)
      : folder_(folder), model_config_(config), tensors_(std::move(tensors)), blocks_(blocks) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) places_[tensors_[i].name] = i;
  }

  Result<DecodedCheckpoint> run() {
    BOOST_OUTCOME_TRY(read_config());
    DecodedCheckpoint result;
    BOOST_OUTCOME_TRY(decode_e8m0());
    BOOST_OUTCOME_TRY(read_ggml_blocks());
    result.block_type = block_type_;
    BOOST_OUTCOME_TRY(repack_compressed_mxfp4());
    result.has_mxfp4 = has_mxfp4_;
    result.is_mxfp4 = method_ == "mxfp4";
    result.is_nvfp4 = is_nvfp4_;
    if (is_nvfp4_) {
      BOOST_OUTCOME_TRY(repack_nvfp4());
    }
    if (!result.is_mxfp4) {
      BOOST_OUTCOME_TRY(decode());
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (!skipped_.contains(i)) result.tensors.push_back(std::move(tensors_[i]));
    std::ranges::move(made_, std::back_inserter(result.tensors));
    return result;
  }

 private:
  Error fault(std::string what, std::string help = {}) const {
    return input_error((folder_ / "config.json").string(), std::move(what), std::move(help));
  }

  template <class T>
  Result<T> of_tensor(const std::string& name, Result<T> result) const {
    if (result) return result;
    Error error = std::move(result).error();
    error.code = ExitCode::kBadInput;
    error.where = folder_.string();
    error.what = fmt::format("tensor {}: {}", quoted_name(name), error.what);
    return error;
  }

  // Returns the place of a tensor that belongs to a quantized weight.
  Result<std::size_t> place_of(const std::string& name) const {
    const auto found = places_.find(name);
    if (found != places_.end()) return found->second;
    return input_error(folder_.string(), fmt::format("tensor {} is missing", quoted_name(name)),
                       "others of the same quantized weight exist; check whether a shard is missing");
  }

  Result<ExpressionRef> values_of(const std::string& name) {
    BOOST_OUTCOME_TRY(const std::size_t place, place_of(name));
    skipped_.insert(place);
    return tensors_[place].values;
  }

  Status read_config() {
    if (const json::value* config = model_config_.if_contains("quantization_config"); config && config->is_object())
      config_ = *config;
    else
      config_.emplace_object();
    method_ = json_string(config_, "quant_method").value_or("");
    // Mistral's params.json has its own form.
    if (const json::value* own = model_config_.if_contains("quantization"); own && method_.empty())
      if (json_string(*own, "qformat_weight") == "fp8_e4m3") method_ = "fp8";
    std::string algorithm(json_string(config_, "quant_algo").value_or(""));
    const auto file = folder_ / "hf_quant_config.json";
    if (algorithm.empty() && is_file(file)) {
      BOOST_OUTCOME_TRY(const json::value other, read_checkpoint_json(file.string()));
      const json::value *quantization = json_member(other, "quantization"), *producer = json_member(other, "producer");
      if (quantization) algorithm = json_string(*quantization, "quant_algo").value_or("");
      if (method_.empty() && producer) method_ = json_string(*producer, "name").value_or("");
    }
    is_nvfp4_ = algorithm == "NVFP4" || algorithm == "W4A16_NVFP4";
    algorithm_ = algorithm;
    if (method_ == "compressed-tensors") {
      auto groups = CompressedGroups::read(config_);
      if (!groups) return fault(groups.error().what);
      groups_ = std::move(groups).value();
      is_nvfp4_ = groups_.have_format(kNvfp4Format);
    }
    return ok();
  }

  Status decode() {
    if (method_.empty()) return ok();
    if (method_ == "fp8") return decode_fp8();
    if (method_ == "compressed-tensors") return decode_compressed();
    if (method_ == "modelopt") return decode_modelopt();
    if (method_ == "gptq") return decode_gptq();
    if (method_ == "awq") return decode_awq();
    if (method_ == "bitnet") return decode_bitnet();
    return fault(fmt::format("unknown quantization method {}", quoted_name(method_)),
                 "supported are fp8, mxfp4, modelopt, compressed-tensors, gptq, awq, and bitnet, and checkpoints that "
                 "are not quantized");
  }

  // Unpacks ternary weights with one scale each, by which they are divided. Weights that are not packed have no scale.
  Status decode_bitnet() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      constexpr std::string_view kEnding = "_scale";
      const bool is_scale = name.ends_with(".weight_scale");
      if (!is_scale) {
        if (name.ends_with(".weight") && tensors_[i].values->type->name == "U8") {
          BOOST_OUTCOME_TRY(place_of(name + std::string(kEnding)));
        }
        continue;
      }
      const std::string weight_name = name.substr(0, name.size() - kEnding.size());
      BOOST_OUTCOME_TRY(const std::size_t weight, weight_of(weight_name, i));
      BOOST_OUTCOME_TRY(const float scale, of_tensor(name, read_scale(*tensors_[i].values)));
      BOOST_OUTCOME_TRY(tensors_[weight].values,
                        of_tensor(weight_name, unpack_ternary(tensors_[weight].values, scale)));
      skipped_.insert(i);
    }
    return ok();
  }

  // Applies scales that are powers of two, stored as X.scale beside X.weight: to blocks of FP8, or as the exponents of
  // MXFP4, whose weights are bytes of two elements.
  Status decode_e8m0() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      if (!name.ends_with(".scale") || tensors_[i].values->type->name != "U8") continue;
      const auto found = places_.find(name.substr(0, name.size() - 5) + "weight");
      if (found == places_.end()) continue;
      NamedTensor& weight = tensors_[found->second];
      const std::string_view type = weight.values->type->name;
      if (type.starts_with("F8_")) {
        BOOST_OUTCOME_TRY(weight.values,
                          of_tensor(weight.name, scaled_by_exponents(weight.values, tensors_[i].values)));
        weight.was_fp8 = true;
        skipped_.insert(i);
      } else if (type == "I8" || type == "U8") {
        BOOST_OUTCOME_TRY(repack_mxfp4(weight, i));
      }
    }
    return ok();
  }

  static Result<ExpressionRef> scaled_by_exponents(const ExpressionRef& weights, const ExpressionRef& exponents) {
    constexpr float kBias = 127;
    BOOST_OUTCOME_TRY(ExpressionRef values, to_type(weights, "F32"));
    BOOST_OUTCOME_TRY(ExpressionRef factors, to_type(exponents, "F32"));
    BOOST_OUTCOME_TRY(factors, expressions::map(std::move(factors), *find_map_function("exp2"), -kBias));
    return expressions::scale_blocks(std::move(values), std::move(factors), kE8m0Block, kE8m0Block);
  }

  Status repack_mxfp4(NamedTensor& weight, std::size_t scales) {
    BOOST_OUTCOME_TRY(weight.values,
                      of_tensor(weight.name, expressions::repack(*find_repack_function("mxfp4"), weight.values,
                                                                 tensors_[scales].values)));
    skipped_.insert(scales);
    has_mxfp4_ = true;
    return ok();
  }

  // Returns the name of the algorithm with which a module is quantized, and the object that describes it.
  std::pair<std::string_view, const json::value*> algorithm_of(std::string_view module) const {
    const json::value* layers = json_member(config_, "quantized_layers");
    if (algorithm_ != kMixedPrecision || !layers || !layers->is_object()) return {algorithm_, &config_};
    const json::value* const layer = layers->get_object().if_contains(module);
    if (!layer) return {};
    return {json_string(*layer, "quant_algo").value_or(""), layer};
  }

  // Reinterprets the bytes of GGML blocks: {bytes of a block, blocks, rows}, whose type is the algorithm's name.
  Status read_ggml_blocks() {
    if (method_ != "modelopt") return ok();
    const Types types;
    const bool all_packed = json_string(config_, "packing").value_or("") == "ggml";
    for (NamedTensor& tensor : tensors_) {
      if (!tensor.name.ends_with(".weight") || tensor.values->type->name != "U8") continue;
      const auto [algorithm, details] = algorithm_of(std::string_view(tensor.name).substr(0, tensor.name.size() - 7));
      if (algorithm == "NVFP4" || algorithm == "MXFP4") continue;  // in layouts of their own, not as blocks
      const TypeInfo* const type = types.find(algorithm);
      if (!type || !type->is_quantized()) {
        if (!all_packed) continue;
        return fault(fmt::format("{} is not a type of GGML blocks", quoted_name(algorithm)),
                     "`quant_algo` names the type of weights with `packing: ggml`; `ggufmill types` lists the types");
      }
      BOOST_OUTCOME_TRY(check_block_size(*details, "group_size", type->block_elements, *type));
      BOOST_OUTCOME_TRY(check_block_size(*details, "block_payload_bytes", type->block_bytes, *type));
      BOOST_OUTCOME_TRY(tensor.values, of_tensor(tensor.name, ggml_blocks(tensor.values, *type)));
      if (blocks_ == Blocks::kDecode) {
        BOOST_OUTCOME_TRY(tensor.values, to_type(std::move(tensor.values), "F32"));
      }
      if (!block_type_) block_type_ = type;
    }
    return ok();
  }

  Status check_block_size(const json::value& details, std::string_view member, std::uint64_t expected,
                          const TypeInfo& type) const {
    const json::value* const size = json_member(details, member);
    if (!size || (size->is_int64() && size->get_int64() == static_cast<std::int64_t>(expected))) return ok();
    return fault(fmt::format("'{}' in the quantization config is {}, but that of {} is {}", member,
                             json::serialize(*size), type.name, expected));
  }

  static Result<ExpressionRef> ggml_blocks(const ExpressionRef& bytes, const TypeInfo& type) {
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

  // Repacks the weights of compressed-tensors' groups in MXFP4.
  Status repack_compressed_mxfp4() {
    if (!groups_.have_format(kMxfp4Format)) return ok();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      if (!name.ends_with(".weight_packed")) continue;
      const std::string weight = name.substr(0, name.size() - 7);
      BOOST_OUTCOME_TRY(const CompressedGroup* const group, group_of(weight));
      if (group->format != kMxfp4Format) continue;
      BOOST_OUTCOME_TRY(const std::size_t scales, place_of(weight + "_scale"));
      BOOST_OUTCOME_TRY(repack_mxfp4(tensors_[i], scales));
      tensors_[i].name = weight;
    }
    return ok();
  }

  // Applies the scales for blocks of rows and columns, `_scale_inv`. The scales of the activations are not used.
  Status decode_fp8() {
    const json::array* block = json_array(config_, "weight_block_size");
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      if (name.ends_with("_scale_inv")) {
        BOOST_OUTCOME_TRY(scale(i, name.substr(0, name.size() - 10), block));
      }
      if (name.ends_with(".qscale_weight")) {
        BOOST_OUTCOME_TRY(scale(i, name.substr(0, name.size() - 13) + "weight", block));
      }
      if (name.ends_with(".activation_scale") || name.ends_with("_activation_scale") || name.ends_with(".qscale_act"))
        skipped_.insert(i);
    }
    return ok();
  }

  // Returns the group of a weight.
  Result<const CompressedGroup*> group_of(std::string_view weight) const {
    if (weight.ends_with(".weight")) weight.remove_suffix(7);
    auto group = groups_.group_of(weight);
    if (!group) return fault(group.error().what);
    return group.value();
  }

  // Decodes the weights of each group by its format; those in NVFP4 have already been repacked.
  Status decode_compressed() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      const bool is_packed = name.ends_with(".weight_packed");
      if (skipped_.contains(i) || !(is_packed || name.ends_with(".weight_scale"))) continue;
      const std::string weight = name.substr(0, name.size() - (is_packed ? 7 : 6));
      BOOST_OUTCOME_TRY(const CompressedGroup* const group, group_of(weight));
      BOOST_OUTCOME_TRY(is_packed ? decode_packed(weight, *group) : decode_scaled(i, weight, *group));
    }
    return ok();
  }

  // Multiplies 8-bit weights by their scales. Those of packed weights are used with the weights.
  Status decode_scaled(std::size_t scales, const std::string& weight, const CompressedGroup& group) {
    if (group.format == kPackedFormat || group.format == kNvfp4Format) return ok();
    if (group.format != "float-quantized" && group.format != "int-quantized" && group.format != "naive-quantized")
      return fault(fmt::format("unknown compressed-tensors format {}", quoted_name(group.format)), kFormatsHelp);
    return scale(scales, weight, json_array(group.weights, "block_structure"));
  }

  // Decodes FP8 with one scale per row or per tensor; NVFP4 weights have already been repacked. The scales of the KV
  // cache are not used.
  Status decode_modelopt() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      if (name.ends_with(".weight_scale") && !skipped_.contains(i)) {
        if (places_.contains(name.substr(0, name.size() - 6))) {
          BOOST_OUTCOME_TRY(scale(i, name.substr(0, name.size() - 6), nullptr));
        }
        skipped_.insert(i);
      }
      if (name.ends_with(".input_scale") || name.ends_with(".k_scale") || name.ends_with(".v_scale"))
        skipped_.insert(i);
    }
    return ok();
  }

  // Returns the place of the weight that has these scales.
  Result<std::size_t> weight_of(const std::string& weight, std::size_t scales) const {
    const auto found = places_.find(weight);
    if (found != places_.end()) return found->second;
    return input_error(folder_.string(), fmt::format("tensor {} is missing, but its scales, {}, exist",
                                                     quoted_name(weight), quoted_name(tensors_[scales].name)));
  }

  // Multiplies weights by their scales: one for each block of `block` (rows, columns), for each row, or for the whole
  // tensor.
  Status scale(std::size_t scales, const std::string& weight_name, const json::array* block) {
    BOOST_OUTCOME_TRY(const std::size_t place, weight_of(weight_name, scales));
    NamedTensor& weight = tensors_[place];
    const bool was_fp8 = weight.values->type->name.starts_with("F8_");
    BOOST_OUTCOME_TRY(weight.values, of_tensor(weight_name, scaled(weight.values, tensors_[scales].values, block)));
    weight.was_fp8 = was_fp8;
    skipped_.insert(scales);
    return ok();
  }

  static Result<ExpressionRef> scaled(const ExpressionRef& weights, const ExpressionRef& scales,
                                      const json::array* block) {
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

  // Reads the packing of 2-, 4- or 8-bit integers in 32-bit words, lowest bits first: "U2", "U4" or "U8", and the
  // number of integers per word.
  Result<std::pair<std::string_view, std::uint64_t>> packing(const json::value& config, std::string_view name) const {
    const json::value* value = json_member(config, name);
    const std::int64_t bits = value && value->is_int64() ? value->get_int64() : 0;
    if (bits == 2) return std::pair(std::string_view("U2"), std::uint64_t{16});
    if (bits == 4) return std::pair(std::string_view("U4"), std::uint64_t{8});
    if (bits == 8) return std::pair(std::string_view("U8"), std::uint64_t{4});
    return fault(
        fmt::format("'{}' in the quantization config is {}", name, value ? json::serialize(*value) : "missing"),
        "2, 4, and 8 bits are supported");
  }

  // Unpacks 32-bit words to F32 integers: {columns, rows} becomes {in_word, columns, rows}.
  static Result<ExpressionRef> unpack(const ExpressionRef& words, std::string_view type, std::uint64_t in_word) {
    const Shape& shape = words->shape;
    if (shape.rank != 2 || words->type->block_bytes != 4)
      return input_error({}, fmt::format("{} of {} is not rows of packed words", describe(shape), words->type->name));
    Shape wide{3, {in_word, shape.dims[0], shape.dims[1], 1}};
    if (type != "U8") wide = Shape{2, {in_word * shape.dims[0], shape.dims[1], 1, 1}};  // blocks run along rows
    BOOST_OUTCOME_TRY(ExpressionRef integers, as_type(words, type, wide));
    BOOST_OUTCOME_TRY(integers, to_type(std::move(integers), "F32"));
    return expressions::reshape(std::move(integers), Shape{3, {in_word, shape.dims[0], shape.dims[1], 1}});
  }

  void make(std::string name, ExpressionRef values) { made_.push_back({std::move(name), std::move(values)}); }

  // Decodes integers packed along the columns, with scales, and zero points packed along the rows.
  Status decode_packed(const std::string& weight, const CompressedGroup& group) {
    if (group.format != kPackedFormat)
      return fault(fmt::format("{} is packed, but the format of its group is {}", quoted_name(weight),
                               quoted_name(group.format)),
                   kFormatsHelp);
    BOOST_OUTCOME_TRY(const auto packed, packing(group.weights, "num_bits"));
    const json::value* const size = json_member(group.weights, "group_size");
    if (!size || !size->is_int64() || size->get_int64() <= 0)
      return fault("'group_size' is missing in the quantization config");
    BOOST_OUTCOME_TRY(ExpressionRef values,
                      of_tensor(weight, packed_values(weight, packed.first, packed.second,
                                                      static_cast<std::uint64_t>(size->get_int64()))));
    make(weight, std::move(values));
    return ok();
  }

  Result<ExpressionRef> packed_values(const std::string& base, std::string_view type, std::uint64_t in_word,
                                      std::uint64_t group) {
    BOOST_OUTCOME_TRY(const ExpressionRef words, values_of(base + "_packed"));
    BOOST_OUTCOME_TRY(ExpressionRef scales, values_of(base + "_scale"));
    BOOST_OUTCOME_TRY(const ExpressionRef dims, values_of(base + "_shape"));
    BOOST_OUTCOME_TRY(const auto shape, read_numbers<std::int64_t>(*dims, "I64"));
    if (shape.size() != 2 || shape[0] <= 0 || shape[1] <= 0)
      return input_error({}, "the stored shape does not have two dimensions");
    const auto rows = static_cast<std::uint64_t>(shape[0]), columns = static_cast<std::uint64_t>(shape[1]);
    BOOST_OUTCOME_TRY(ExpressionRef values, unpack(words, type, in_word));
    BOOST_OUTCOME_TRY(values,
                      expressions::reshape(std::move(values),
                                           Shape{2, {in_word * words->shape.dims[0], words->shape.dims[1], 1, 1}}));
    BOOST_OUTCOME_TRY(values, expressions::slice(std::move(values), 0, 0, columns));
    if (values->shape.dims[1] != rows)
      return input_error({}, fmt::format("{} rows, expected {}", values->shape.dims[1], rows));
    BOOST_OUTCOME_TRY(scales, to_type(std::move(scales), "F32"));
    ExpressionRef offsets;
    if (places_.contains(base + "_zero_point")) {
      BOOST_OUTCOME_TRY(const ExpressionRef zeros, values_of(base + "_zero_point"));
      BOOST_OUTCOME_TRY(offsets, unpack(zeros, type, in_word));
      BOOST_OUTCOME_TRY(offsets, expressions::transpose(std::move(offsets), {1, 0, 2}));
      BOOST_OUTCOME_TRY(offsets,
                        expressions::reshape(std::move(offsets),
                                             Shape{2, {zeros->shape.dims[0], in_word * zeros->shape.dims[1], 1, 1}}));
      BOOST_OUTCOME_TRY(offsets, expressions::slice(std::move(offsets), 1, 0, rows));
    } else {
      const float middle = in_word == 8 ? 8 : in_word == 4 ? 128 : 2;
      BOOST_OUTCOME_TRY(values, expressions::map(std::move(values), *find_map_function("add"), -middle));
    }
    return expressions::scale_blocks(std::move(values), std::move(scales), group, 1, std::move(offsets));
  }

  // Decodes GPTQ: words along the rows of a transposed matrix, zero points stored minus one unless
  // `checkpoint_format` is not "gptq".
  Status decode_gptq() {
    BOOST_OUTCOME_TRY(const auto packed, packing(config_, "bits"));
    const bool less_one = json_string(config_, "checkpoint_format").value_or("gptq") == "gptq";
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      if (!name.ends_with(".qweight")) continue;
      const std::string base = name.substr(0, name.size() - 8);
      BOOST_OUTCOME_TRY(ExpressionRef values,
                        of_tensor(base, gptq_values(base, packed.first, packed.second, less_one)));
      make(base + ".weight", std::move(values));
    }
    return ok();
  }

  // Transposes {out, groups} to {groups, out}.
  static Result<ExpressionRef> turned(ExpressionRef scales) {
    BOOST_OUTCOME_TRY(ExpressionRef values, to_type(std::move(scales), "F32"));
    return expressions::transpose(std::move(values), {1, 0});
  }

  Result<ExpressionRef> gptq_values(const std::string& base, std::string_view type, std::uint64_t in_word,
                                    bool less_one) {
    BOOST_OUTCOME_TRY(const ExpressionRef words, values_of(base + ".qweight"));
    BOOST_OUTCOME_TRY(const ExpressionRef zeros, values_of(base + ".qzeros"));
    BOOST_OUTCOME_TRY(const ExpressionRef scales, values_of(base + ".scales"));
    BOOST_OUTCOME_TRY(const ExpressionRef groups, values_of(base + ".g_idx"));
    const std::uint64_t columns = in_word * words->shape.dims[1], rows = words->shape.dims[0];
    const std::uint64_t count = scales->shape.dims[1];
    BOOST_OUTCOME_TRY(const bool in_order, are_in_order(*groups, columns, count));
    BOOST_OUTCOME_TRY(ExpressionRef values, unpack(words, type, in_word));
    BOOST_OUTCOME_TRY(values, expressions::transpose(std::move(values), {0, 2, 1}));
    BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{2, {columns, rows, 1, 1}}));
    BOOST_OUTCOME_TRY(ExpressionRef offsets, unpack(zeros, type, in_word));
    BOOST_OUTCOME_TRY(offsets, expressions::reshape(std::move(offsets), Shape{2, {rows, count, 1, 1}}));
    BOOST_OUTCOME_TRY(offsets, turned(std::move(offsets)));
    if (less_one) {
      BOOST_OUTCOME_TRY(offsets, expressions::map(std::move(offsets), *find_map_function("add"), 1));
    }
    BOOST_OUTCOME_TRY(ExpressionRef factors, turned(scales));
    if (!in_order) {  // desc_act
      BOOST_OUTCOME_TRY(factors, expressions::gather(std::move(factors), groups));
      BOOST_OUTCOME_TRY(offsets, expressions::gather(std::move(offsets), groups));
    }
    return expressions::scale_blocks(std::move(values), std::move(factors), in_order ? columns / count : 1, 1,
                                     std::move(offsets));
  }

  // Returns true if the groups are consecutive runs of columns of equal length.
  static Result<bool> are_in_order(const Expression& groups, std::uint64_t columns, std::uint64_t count) {
    BOOST_OUTCOME_TRY(const auto index, read_numbers<std::int32_t>(groups, "I32"));
    if (index.size() != columns)
      return input_error({}, fmt::format("{} columns, but groups of {}", columns, index.size()));
    bool in_order = count != 0 && columns % count == 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (index[i] < 0 || static_cast<std::uint64_t>(index[i]) >= count)
        return input_error({}, fmt::format("column {} is in group {}, but there are only {}", i, index[i], count));
      in_order = in_order && static_cast<std::uint64_t>(index[i]) == i / (columns / count);
    }
    return in_order;
  }

  // Decodes AWQ: like GPTQ, but with words along the columns before transposition, and the integers of a word in the
  // order 0, 2, 4, 6, 1, 3, 5, 7.
  Status decode_awq() {
    BOOST_OUTCOME_TRY(const auto packed, packing(config_, json_member(config_, "bits") ? "bits" : "w_bit"));
    if (packed.second != 8) return fault("AWQ is supported with 4 bits only");
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name;
      if (!name.ends_with(".qweight")) continue;
      const std::string base = name.substr(0, name.size() - 8);
      BOOST_OUTCOME_TRY(ExpressionRef values, of_tensor(base, awq_values(base)));
      make(base + ".weight", std::move(values));
    }
    return ok();
  }

  static Result<ExpressionRef> awq_integers(const ExpressionRef& words) {
    BOOST_OUTCOME_TRY(ExpressionRef values, unpack(words, "U4", 8));
    const std::uint64_t columns = words->shape.dims[0], rows = words->shape.dims[1];
    BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{4, {4, 2, columns, rows}}));
    BOOST_OUTCOME_TRY(values, expressions::transpose(std::move(values), {1, 0, 2, 3}));
    BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{2, {8 * columns, rows, 1, 1}}));
    return expressions::transpose(std::move(values), {1, 0});
  }

  Result<ExpressionRef> awq_values(const std::string& base) {
    BOOST_OUTCOME_TRY(const ExpressionRef words, values_of(base + ".qweight"));
    BOOST_OUTCOME_TRY(const ExpressionRef zeros, values_of(base + ".qzeros"));
    BOOST_OUTCOME_TRY(const ExpressionRef scales, values_of(base + ".scales"));
    const std::uint64_t columns = words->shape.dims[1], count = scales->shape.dims[1];
    if (count == 0 || columns % count != 0)
      return input_error({}, fmt::format("{} columns in {} groups", columns, count));
    BOOST_OUTCOME_TRY(ExpressionRef values, awq_integers(words));
    BOOST_OUTCOME_TRY(ExpressionRef offsets, awq_integers(zeros));
    BOOST_OUTCOME_TRY(ExpressionRef factors, turned(scales));
    return expressions::scale_blocks(std::move(values), std::move(factors), columns / count, 1, std::move(offsets));
  }

  // Repacks blocks of 16 with an 8-bit scale each and one scale for the tensor as GGUF's super-blocks, with the
  // tensor's scale as a separate tensor. compressed-tensors uses other names, and stores the reciprocals of the
  // tensor's scales.
  Status repack_nvfp4() {
    const bool compressed = method_ == "compressed-tensors";
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string name = tensors_[i].name, ending = compressed ? ".weight_packed" : ".weight";
      if (!name.ends_with(ending)) {
        if (name.ends_with(".k_scale") || name.ends_with(".v_scale")) skipped_.insert(i);
        continue;
      }
      const std::string base = name.substr(0, name.size() - ending.size());
      if (compressed) {
        BOOST_OUTCOME_TRY(const CompressedGroup* const group, group_of(base));
        if (group->format != kNvfp4Format) continue;
      }
      const auto scales = places_.find(base + ".weight_scale");
      if (scales == places_.end() || tensors_[scales->second].values->shape.rank < 2) continue;
      skipped_.insert(scales->second);
      NamedTensor& tensor = tensors_[i];
      BOOST_OUTCOME_TRY(tensor.values, of_tensor(name, nvfp4(tensor.values, tensors_[scales->second].values)));
      tensor.name = base + ".weight";
      tensor.first = true;
      BOOST_OUTCOME_TRY(
          add_beside(tensor, ".scale", base + (compressed ? ".weight_global_scale" : ".weight_scale_2"), compressed));
      BOOST_OUTCOME_TRY(
          add_beside(tensor, ".input_scale", base + (compressed ? ".input_global_scale" : ".input_scale"), compressed));
    }
    return ok();
  }

  Status add_beside(NamedTensor& tensor, std::string ending, const std::string& name, bool reciprocal) {
    float value = 1;
    if (const auto found = places_.find(name); found != places_.end()) {
      skipped_.insert(found->second);
      BOOST_OUTCOME_TRY(value, of_tensor(name, read_scale(*tensors_[found->second].values)));
      if (reciprocal) value = 1.0f / value;
    }
    tensor.beside.emplace_back(std::move(ending), one_number(value));
    return ok();
  }

  static Result<ExpressionRef> nvfp4(const ExpressionRef& pairs, const ExpressionRef& scales) {
    BOOST_OUTCOME_TRY(ExpressionRef bytes, as_type(pairs, "I8", pairs->shape));
    BOOST_OUTCOME_TRY(ExpressionRef codes, as_type(scales, "I8", scales->shape));
    return expressions::repack(*find_repack_function("nvfp4"), std::move(bytes), std::move(codes));
  }

  const std::filesystem::path& folder_;
  const json::object& model_config_;  // config.json
  std::vector<NamedTensor> tensors_;
  Blocks blocks_;
  const TypeInfo* block_type_ = nullptr;  // of the first tensor of GGML blocks
  std::unordered_map<std::string, std::size_t> places_;
  std::set<std::size_t> skipped_;
  std::vector<NamedTensor> made_;
  json::value config_;
  std::string method_, algorithm_;
  CompressedGroups groups_;
  bool is_nvfp4_ = false, has_mxfp4_ = false;
};

}  // namespace

Result<DecodedCheckpoint> decode_checkpoint(const std::filesystem::path& folder, const json::object& config,
                                            std::vector<NamedTensor> tensors, Blocks blocks) {
  return Decoder(folder, config, std::move(tensors), blocks).run();
}

}  // namespace ggufmill::huggingface
