#include "stages/huggingface/map/check_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>

#include "pipeline/core/text.h"

namespace ggufmill::huggingface {
namespace {

// Endings of names that identify a scheme, and the tool that writes its weights as numbers. Sources: the names that
// transformers' quantizers save (Apache-2.0), and mlx-lm (MIT).
struct Scheme {
  std::string_view ending, name, tool;
  bool is_read = false;  // with `quantization_config`
};
constexpr std::string_view kTransformers = "`model.dequantize()` of transformers";
constexpr Scheme kSchemes[] = {
    {".codebooks", "AQLM", ""},
    {".W_q", "HQQ", "`HQQLinear.dequantize()` of hqq"},
    {".weight_scales", "EETQ", ""},
    {".qzeros", "GPTQ or AWQ", "", true},
    {".weight_packed", "compressed-tensors", "", true},
    {".absmax", "bitsandbytes", kTransformers},
    {".SCB", "bitsandbytes", kTransformers},
    {"._data", "quanto", "`dequantize()` of optimum-quanto"},
    {".centroids", "VPTQ", ""},
    {".biases", "MLX", "`mlx_lm.convert --dequantize`"},
};

class CodedTensors {
 public:
  CodedTensors(const std::vector<NamedTensor>& tensors, const NameTest& has_rule, const NameTest& is_weight)
      : tensors_(tensors), has_rule_(has_rule), is_weight_(is_weight) {
    for (const NamedTensor& tensor : tensors) names_.insert(tensor.name);
  }

  Status check(const std::string& where) const {
    const NamedTensor* first = nullptr;
    std::size_t count = 0;
    for (const NamedTensor& tensor : tensors_) {
      const bool is_code =
          is_integer_matrix(*tensor.values) ? !module_of(tensor.name).empty() : is_scaled_float(tensor);
      if (!is_code) continue;
      if (!first) first = &tensor;
      ++count;
    }
    if (!first) return ok();
    const std::string module = module_of(first->name);
    const bool are_floats = !is_integer_matrix(*first->values);
    const std::vector<std::string> beside = others_in(module, first->name);
    const Scheme* const scheme = scheme_of(module);
    constexpr const char* kOriginal = "convert the original that this checkpoint was made from";
    return input_error(
        where,
        fmt::format("tensor {} is {} of {}{}: codes of quantized weights{}, which cannot be used as weights{}",
                    quoted_name(first->name_in_file()), describe(first->values->shape), first->values->type->name,
                    count > 1 ? ", like " + counted(count - 1, "other") : "",
                    scheme ? fmt::format(" ({})", scheme->name) : std::string(),
                    beside.empty() ? ", and their scales are missing"
                                   : fmt::format("; beside it: {}", fmt::join(beside, ", "))),
        are_floats || (scheme && scheme->is_read)
            ? fmt::format("take the config.json that belongs to the weights, whose `quantization_config` says "
                          "how to read them; or {}",
                          kOriginal)
            : fmt::format("{}, or write its weights with {}, and convert the result", kOriginal,
                          scheme && !scheme->tool.empty() ? scheme->tool : "the tool that quantized it"));
  }

 private:
  static bool is_integer_matrix(const Expression& values) {
    return values.type->type_class == TypeClass::kInteger && values.shape.rank >= 2 && values.as_extent();
  }

  // Returns true if the tensor is a matrix of 8-bit floats whose scales, stored beside it, have not been applied.
  // Without scales, such floats are ordinary numbers.
  bool is_scaled_float(const NamedTensor& tensor) const {
    const Expression& values = *tensor.values;
    const bool is_matrix = values.type->type_class == TypeClass::kFloat && values.type->block_bytes == 1 &&
                           values.shape.rank >= 2 && values.as_extent();
    const std::string module = is_matrix ? module_of(tensor.name) : std::string();
    return !module.empty() && std::ranges::any_of(names_beside(module, tensor.name), [&](const std::string& name) {
      const std::string ending = lower_case(std::string_view(name).substr(module.size()));
      const bool is_of_values = ending.find("input") != ending.npos || ending.find("output") != ending.npos;
      return ending.find("scale") != ending.npos && !is_of_values && !has_rule_(name);
    });
  }

  // Returns the module whose weight the tensor stands for; empty if it is not a weight.
  std::string module_of(const std::string& name) const {
    constexpr std::string_view kWeight = ".weight";
    if (is_weight_(name)) return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
    if (has_rule_(name)) return {};  // a table, or blocks
    for (std::size_t end = name.rfind('.'), parts = 0; end != name.npos && parts < 2; ++parts) {
      std::string module = name.substr(0, end);
      const std::string weight = module + std::string(kWeight);
      if (!names_.contains(weight) && is_weight_(weight)) return module;
      end = end == 0 ? name.npos : name.rfind('.', end - 1);
    }
    return {};
  }

  // Returns null if it is not known.
  const Scheme* scheme_of(const std::string& module) const {
    for (const std::string& name : names_beside(module, {}))
      for (const Scheme& scheme : kSchemes)
        if (name.ends_with(scheme.ending)) return &scheme;
    return nullptr;
  }

  // Returns the names of some other tensors of the module.
  std::vector<std::string> others_in(const std::string& module, const std::string& name) const {
    constexpr std::size_t kMax = 3;
    std::vector<std::string> others;
    for (const std::string& other : names_beside(module, name))
      if (!other.ends_with(".bias") && others.size() < kMax)
        others.push_back(quoted_name(std::string_view(other).substr(module.size() + 1)));
    return others;
  }

  // Returns the names of the module's tensors except one: 'q_proj.scale', and 'q_proj_scale'.
  std::vector<std::string> names_beside(const std::string& module, const std::string& except) const {
    std::vector<std::string> names;
    for (const char separator : {'.', '_'}) {
      const std::string begin = module + separator;
      for (auto name = names_.lower_bound(begin); name != names_.end() && name->starts_with(begin); ++name)
        if (*name != except && (separator == '.' || name->find('.', begin.size()) == name->npos))
          names.push_back(*name);
    }
    return names;
  }

  const std::vector<NamedTensor>& tensors_;
  const NameTest& has_rule_;
  const NameTest& is_weight_;
  std::set<std::string> names_;
};

}  // namespace

Status check_no_codes(const std::vector<NamedTensor>& tensors, const NameTest& has_rule, const NameTest& is_weight,
                      const std::string& where) {
  return CodedTensors(tensors, has_rule, is_weight).check(where);
}

}  // namespace ggufmill::huggingface
