// Model specs: from JSON, and the Llama-shaped one.
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

}  // namespace ggufmill::synth
