// Creates specs of synthetic models: parsed from JSON, or computed for a Llama of a given size.
#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/synth_model.h"

namespace ggufmill::synth {
namespace {

namespace json = boost::json;

std::string text(const json::value& value) { return std::string(value.as_string()); }

WeightType weight_type(const std::string& name) {
  if (name == "F32") return WeightType::kF32;
  if (name == "F16") return WeightType::kF16;
  if (name == "BF16") return WeightType::kBf16;
  throw std::invalid_argument("unknown weight type '" + name + "'");
}

TensorSpec parse_tensor(const json::object& tensor) {
  TensorSpec spec;
  spec.name = text(tensor.at("name"));
  spec.type = weight_type(text(tensor.at("type")));
  for (const json::value& dim : tensor.at("dims").as_array()) spec.dims.push_back(dim.to_number<std::uint64_t>());
  spec.distribution = distribution_named(text(tensor.at("dist")));
  spec.seed = tensor.at("seed").to_number<std::uint64_t>();
  return spec;
}

constexpr std::uint64_t kHead = 64;       // width of an attention head
constexpr std::uint64_t kMaxLayers = 48;  // beyond this the model gets wider instead

struct Shape {
  std::uint64_t width, vocabulary, layers;
  std::uint64_t feed_forward() const { return width * 11 / 4; }  // a multiple of 256, as the k-quants need
  std::uint64_t kv_width() const { return width / 2; }           // two query heads share a key and value head
  std::uint64_t outside_layers() const { return 2 * width * vocabulary; }
  std::uint64_t per_layer() const { return 2 * width * (width + kv_width()) + 3 * width * feed_forward(); }
};

Shape shape_for(std::uint64_t weights) {
  for (std::uint64_t width = 1024; width <= 16384; width *= 2) {
    Shape shape{width, 32000, 0};
    const std::uint64_t rest = weights > shape.outside_layers() ? weights - shape.outside_layers() : 0;
    shape.layers = std::max<std::uint64_t>(1, (rest + shape.per_layer() / 2) / shape.per_layer());
    if (shape.layers <= kMaxLayers) return shape;
  }
  throw std::invalid_argument("a Llama-shaped model of that many weights is not known");
}

std::vector<MetadataSpec> metadata_of(const Shape& shape, WeightType type) {
  const std::uint32_t file_type = type == WeightType::kF32 ? 0 : type == WeightType::kF16 ? 1 : 32;
  return {
      {"general.architecture", "string", "llama"},
      {"general.name", "string", "synthetic llama"},
      {"general.type", "string", "model"},
      {"llama.context_length", "uint32", 4096},
      {"llama.embedding_length", "uint32", shape.width},
      {"llama.block_count", "uint32", shape.layers},
      {"llama.feed_forward_length", "uint32", shape.feed_forward()},
      {"llama.attention.head_count", "uint32", shape.width / kHead},
      {"llama.attention.head_count_kv", "uint32", shape.kv_width() / kHead},
      {"llama.attention.layer_norm_rms_epsilon", "float32", 1e-5},
      {"llama.rope.dimension_count", "uint32", kHead},
      {"llama.rope.freq_base", "float32", 10000.0},
      {"general.file_type", "uint32", file_type},
      {"tokenizer.ggml.model", "string", "llama"},
      {"tokenizer.ggml.pre", "string", "default"},
      {"tokenizer.ggml.tokens", "tokens", shape.vocabulary},
      {"tokenizer.ggml.bos_token_id", "uint32", 1},
      {"tokenizer.ggml.eos_token_id", "uint32", 2},
      {"general.quantization_version", "uint32", 2},
  };
}

class TensorList {
 public:
  explicit TensorList(WeightType type) : type_(type) {}
  void add(std::string name, std::uint64_t row, std::uint64_t rows) {
    tensors_.push_back({std::move(name), type_, {row, rows}, Distribution::kOutliers, ++seed_});
  }
  void add_norm(std::string name, std::uint64_t width) {
    tensors_.push_back({std::move(name), WeightType::kF32, {width}, Distribution::kNorm, ++seed_});
  }
  std::vector<TensorSpec> take() { return std::move(tensors_); }

 private:
  WeightType type_;
  std::uint64_t seed_ = 100;
  std::vector<TensorSpec> tensors_;
};

void add_layer(TensorList& list, const Shape& shape, std::uint64_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  list.add_norm(prefix + "attn_norm.weight", shape.width);
  list.add(prefix + "attn_q.weight", shape.width, shape.width);
  list.add(prefix + "attn_k.weight", shape.width, shape.kv_width());
  list.add(prefix + "attn_v.weight", shape.width, shape.kv_width());
  list.add(prefix + "attn_output.weight", shape.width, shape.width);
  list.add_norm(prefix + "ffn_norm.weight", shape.width);
  list.add(prefix + "ffn_gate.weight", shape.width, shape.feed_forward());
  list.add(prefix + "ffn_up.weight", shape.width, shape.feed_forward());
  list.add(prefix + "ffn_down.weight", shape.feed_forward(), shape.width);
}

}  // namespace

std::uint64_t TensorSpec::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : dims) product *= dim;
  return product;
}

std::uint64_t TensorSpec::bytes() const { return elements() * (type == WeightType::kF32 ? 4 : 2); }

ModelSpec parse_spec(const json::value& value) {
  const json::object& object = value.as_object();
  ModelSpec spec;
  if (const json::value* alignment = object.if_contains("alignment")) {
    spec.alignment = alignment->to_number<std::uint64_t>();
  }
  for (const json::value& entry : object.at("metadata").as_array()) {
    spec.metadata.push_back({text(entry.at(0)), text(entry.at(1)), entry.at(2)});
  }
  for (const json::value& tensor : object.at("tensors").as_array()) {
    spec.tensors.push_back(parse_tensor(tensor.as_object()));
  }
  return spec;
}

ModelSpec load_spec(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return parse_spec(json::parse(std::string(std::istreambuf_iterator<char>(file), {})));
}

ModelSpec llama_spec(std::uint64_t weights, WeightType type) {
  const Shape shape = shape_for(weights);
  TensorList list(type);
  list.add("token_embd.weight", shape.width, shape.vocabulary);
  for (std::uint64_t layer = 0; layer < shape.layers; ++layer) add_layer(list, shape, layer);
  list.add_norm("output_norm.weight", shape.width);
  list.add("output.weight", shape.width, shape.vocabulary);
  return {32, metadata_of(shape, type), list.take()};
}

}  // namespace ggufmill::synth
