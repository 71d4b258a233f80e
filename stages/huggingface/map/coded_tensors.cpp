#include "stages/huggingface/map/coded_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>

#include "pipeline/core/text.h"

namespace ggufmill::huggingface {
namespace {

// Ends of names by which a scheme can be told. Sources: the names that transformers' quantizers save (Apache-2.0).
struct Scheme {
  std::string_view ending, name;
};
constexpr Scheme kSchemes[] = {
    {".codebooks", "AQLM"},      {".W_q", "HQQ"},      {".weight_scales", "EETQ"}, {".qzeros", "GPTQ or AWQ"},
    {".absmax", "bitsandbytes"}, {"._data", "quanto"}, {".centroids", "VPTQ"},
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
      if (!is_integer_matrix(*tensor.values) || module_of(tensor.name).empty()) continue;
      if (!first) first = &tensor;
      ++count;
    }
    if (!first) return ok();
    const std::string module = module_of(first->name);
    const std::vector<std::string> beside = others_in(module, first->name);
    const std::string_view scheme = scheme_of(module);
    return input_error(
        where,
        fmt::format("tensor {} is {} of {}{}: codes of quantized weights{}, which cannot be used as weights{}",
                    quoted_name(first->name), describe(first->values->shape), first->values->type->name,
                    count > 1 ? ", like " + counted(count - 1, "other") : "",
                    scheme.empty() ? std::string() : fmt::format(" ({})", scheme),
                    beside.empty() ? ", and their scales are missing"
                                   : fmt::format("; beside it: {}", fmt::join(beside, ", "))),
        "take the checkpoint that was quantized, or write its weights with the tool that quantized it "
        "(`mlx_lm.convert --dequantize`, `model.dequantize()` of transformers), and convert that");
  }

 private:
  static bool is_integer_matrix(const Expression& values) {
    return values.type->type_class == TypeClass::kInteger && values.shape.rank >= 2 && values.as_extent();
  }

  // Returns the module whose weight the tensor stands for; empty if it is no weight.
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

  std::string_view scheme_of(const std::string& module) const {
    for (auto name = names_.lower_bound(module + "."); name != names_.end() && name->starts_with(module + "."); ++name)
      for (const Scheme& scheme : kSchemes)
        if (name->ends_with(scheme.ending)) return scheme.name;
    return {};
  }

  // Returns the names of some other tensors of the module.
  std::vector<std::string> others_in(const std::string& module, const std::string& name) const {
    constexpr std::size_t kMost = 3;
    std::vector<std::string> others;
    for (auto other = names_.lower_bound(module + "."); other != names_.end() && other->starts_with(module + ".");
         ++other)
      if (*other != name && !other->ends_with(".bias") && others.size() < kMost)
        others.push_back(quoted_name(other->substr(module.size() + 1)));
    return others;
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
