#include "stages/huggingface/checkpoint/quantized_tensors.h"

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::huggingface {
QuantizedTensors::QuantizedTensors(fs::path from, std::vector<NamedTensor> all)
    : folder(std::move(from)), tensors(std::move(all)) {
  for (std::size_t i = 0; i < tensors.size(); ++i) places[tensors[i].name] = i;
}

Error QuantizedTensors::fault(std::string what, std::string help) const {
  return input_error((folder / "config.json").string(), std::move(what), std::move(help));
}

Error QuantizedTensors::of_tensor(const std::string& name, Error error) const {
  error.code = ExitCode::kBadInput;
  error.where = folder.string();
  const auto place = places.find(name);
  error.what = fmt::format(
      "tensor {}: {}", quoted_name(place == places.end() ? name : tensors[place->second].name_in_file()), error.what);
  return error;
}

Result<std::size_t> QuantizedTensors::place_of(const std::string& name) const {
  const auto found = places.find(name);
  if (found != places.end()) return found->second;
  return input_error(folder.string(), fmt::format("tensor {} is missing", quoted_name(name)),
                     "others of the same quantized weight exist; check whether a file of the weights is missing");
}

Result<std::size_t> QuantizedTensors::weight_of(const std::string& weight, std::size_t scales) const {
  const auto found = places.find(weight);
  if (found != places.end()) return found->second;
  return input_error(folder.string(), fmt::format("tensor {} is missing, but its scales, {}, exist",
                                                  quoted_name(weight), quoted_name(tensors[scales].name)));
}

Result<ExpressionRef> QuantizedTensors::values_of(const std::string& name) {
  BOOST_OUTCOME_TRY(const std::size_t place, place_of(name));
  skipped.insert(place);
  return tensors[place].values;
}

void QuantizedTensors::make(std::string name, ExpressionRef values) {
  made.push_back({std::move(name), std::move(values)});
}

const boost::json::value* layer_entry(const QuantizedTensors& checkpoint, std::string_view module) {
  while (!checkpoint.layers.empty()) {
    if (const auto found = checkpoint.layers.find(std::string(module)); found != checkpoint.layers.end())
      return &found->second;
    const std::size_t dot = module.rfind('.');
    if (dot == module.npos) break;
    module = module.substr(0, dot);
  }
  return nullptr;
}

Result<float> read_scale(const Expression& tensor) {
  BOOST_OUTCOME_TRY(const auto numbers, read_small_values(tensor));
  if (numbers.size() != 1) return input_error({}, fmt::format("has {} values, expected one", numbers.size()));
  return numbers[0];
}

Result<ExpressionRef> as_type(const ExpressionRef& tensor, std::string_view type, const Shape& shape) {
  const Extent* extent = tensor->as_extent();
  if (!extent) return input_error({}, "is not a tensor in the file");
  return expressions::extent(type_named(type), shape, *extent);
}

}  // namespace ggufmill::huggingface
