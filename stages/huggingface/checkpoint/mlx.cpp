// Weights of MLX: X.weight has codes of 2, 3, 4, 5, 6 or 8 bits in 32-bit words, the first in the lowest bits, across
// the borders of words; a value is code * scale + bias, with X.scales and X.biases for each group of columns. The
// arithmetic is that of mlx.core.dequantize(). Source of the layout: mlx/ops.cpp and python/mlx/nn/layers/quantized.py
// of MLX (MIT), and mlx_lm/utils.py of mlx-lm (MIT) for the keys of config.json.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kWordBits = 32;
constexpr std::array<std::uint64_t, 3> kGroups{32, 64, 128};

// The storage format of a module's codes.
struct Coding {
  std::uint64_t bits = 0, group = 0;
  bool operator==(const Coding&) const = default;
};

std::string described(const Coding& coding) {
  return fmt::format("{} bits in groups of {}", coding.bits, coding.group);
}

// Returns an empty name if MLX has no codes with that number of bits.
std::string_view type_of_codes(std::uint64_t bits) {
  constexpr std::string_view kTypes[] = {"", "", "U2", "U3", "U4", "U5", "U6", "", "U8"};
  return bits < std::size(kTypes) ? kTypes[bits] : std::string_view();
}

// A quantized module, and the places of its tensors.
struct Module {
  std::string name;
  std::size_t weight = 0, scales = 0, biases = 0;
};

class MlxCheckpoint {
 public:
  MlxCheckpoint(QuantizedTensors& checkpoint, const json::object& config, const DecodeOptions& options)
      : checkpoint_(checkpoint), config_(config), options_(options) {}

  Status decode() {
    BOOST_OUTCOME_TRY(find_modules());
    if (modules_.empty()) return ok();
    BOOST_OUTCOME_TRY(read_codings());
    if (!all_) {
      BOOST_OUTCOME_TRY(all_, coding_by_shapes());
    }
    for (const Module& module : modules_) {
      NamedTensor& weight = checkpoint_.tensors[module.weight];
      BOOST_OUTCOME_TRY(weight.values, checkpoint_.of_tensor(weight.name, values_of(module)));
      weight.stored = nullptr;
      checkpoint_.skipped.insert({module.scales, module.biases});
    }
    return ok();
  }

 private:
  const ExpressionRef& tensor(std::size_t place) const { return checkpoint_.tensors[place].values; }

  Status find_modules() {
    constexpr std::string_view kScales = ".scales";
    for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const std::string& name = checkpoint_.tensors[i].name;
      if (!name.ends_with(kScales)) continue;
      Module module{name.substr(0, name.size() - kScales.size()), 0, i};
      const auto weight = checkpoint_.places.find(module.name + ".weight");
      if (weight == checkpoint_.places.end() || tensor(weight->second)->type->name != "U32") continue;
      module.weight = weight->second;
      if (tensor(i)->type->type_class == TypeClass::kInteger)
        return checkpoint_.of_tensor(
            checkpoint_.tensors[module.weight].name,
            input_error({},
                        fmt::format("is quantized by MLX with scales of {}: only codes with scales and biases "
                                    "(MLX's mode 'affine') are supported",
                                    tensor(i)->type->name),
                        "write the weights with `mlx_lm.convert --dequantize`, and convert the result"));
      BOOST_OUTCOME_TRY(module.biases, checkpoint_.place_of(module.name + ".biases"));
      modules_.push_back(std::move(module));
    }
    return ok();
  }

  // Reads `quantization` of config.json, which mlx-lm also writes as `quantization_config`: numbers for all modules,
  // and objects with numbers for modules of their own.
  Status read_codings() {
    for (const char* const key : {"quantization", "quantization_config"}) {
      const json::value* const all = config_.if_contains(key);
      if (!all || !all->is_object()) continue;
      const std::optional<Coding> coding = coding_in(*all);
      if (!coding) continue;
      all_ = coding;
      for (const auto& [given, own] : all->get_object()) {
        const std::optional<Coding> of_module = coding_in(own);
        if (!of_module) continue;
        std::optional<std::string> module = std::string(given);
        if (options_.rename) {
          BOOST_OUTCOME_TRY(module, options_.rename(*module));
        }
        if (module) own_[*module] = *of_module;
      }
      return ok();
    }
    return ok();
  }

  static std::optional<Coding> coding_in(const json::value& value) {
    const auto number = [&](std::string_view name) -> std::uint64_t {
      const json::value* const member = json_member(value, name);
      const auto whole = member ? whole_number(*member) : std::nullopt;
      return whole && *whole > 0 ? static_cast<std::uint64_t>(*whole) : 0;
    };
    const Coding coding{number("bits"), number("group_size")};
    if (coding.bits == 0 || coding.group == 0) return {};
    return coding;
  }

  // Returns the bits that a module has if its groups have this size; 0 if none fit.
  std::uint64_t bits_of(const Module& module, std::uint64_t group) const {
    const std::uint64_t bits = kWordBits * tensor(module.weight)->shape.columns();
    const std::uint64_t columns = group * tensor(module.scales)->shape.columns();
    return columns != 0 && bits % columns == 0 && !type_of_codes(bits / columns).empty() ? bits / columns : 0;
  }

  // Determines the group size from the shapes: half as many columns with twice as many bits have the same words, but
  // the columns of a matrix are the rows of others, or as many as the values of a norm.
  Result<Coding> coding_by_shapes() const {
    std::vector<Coding> possible, likely;
    const std::set<std::uint64_t> known = known_sizes();
    const std::uint64_t hidden = hidden_size();
    for (const std::uint64_t group : kGroups) {
      if (!std::ranges::all_of(modules_, [&](const Module& module) { return bits_of(module, group) != 0; })) continue;
      possible.push_back({bits_of(modules_[0], group), group});
      const bool fits = std::ranges::all_of(modules_, [&](const Module& module) {
        const std::uint64_t columns = group * tensor(module.scales)->shape.columns();
        const bool in_layer = module.name.find_first_of("0123456789") != std::string::npos;
        return known.contains(columns) && (in_layer || hidden == 0 || columns == hidden);
      });
      if (fits) likely.push_back(possible.back());
    }
    if (likely.size() == 1) return Coding{0, likely[0].group};
    std::vector<std::string> texts;
    for (const Coding& coding : possible) texts.push_back(described(coding));
    return checkpoint_.fault(
        fmt::format("does not say how MLX quantized the weights (first in {}), and their shapes {}",
                    quoted_name(checkpoint_.tensors[modules_[0].weight].name),
                    texts.empty() ? "fit no group size" : fmt::format("allow {}", fmt::join(texts, ", and "))),
        "add a key with the right numbers, such as `\"quantization\": {\"group_size\": 64, \"bits\": 4}`, to "
        "config.json");
  }

  std::set<std::uint64_t> known_sizes() const {
    std::set<std::uint64_t> sizes{hidden_size()};
    for (const NamedTensor& each : checkpoint_.tensors) {
      const Shape& shape = each.values->shape;
      if (each.name.ends_with(".scales") || each.name.ends_with(".biases")) continue;
      sizes.insert(shape.dims[1]);
      if (each.values->type->name != "U32") sizes.insert(shape.dims[0]);
    }
    return sizes;
  }

  // Returns 0 if config.json does not say it.
  std::uint64_t hidden_size() const {
    for (const char* const name : {"hidden_size", "n_embd", "d_model", "dim"})
      for (const char* const part : {"", "text_config"}) {
        const json::value* const object = *part ? config_.if_contains(part) : nullptr;
        const json::value* const size = !*part   ? config_.if_contains(name)
                                        : object ? json_member(*object, name)
                                                 : nullptr;
        if (const auto whole = size ? whole_number(*size) : std::nullopt; whole && *whole > 0)
          return static_cast<std::uint64_t>(*whole);
      }
    return 0;
  }

  Result<ExpressionRef> values_of(const Module& module) const {
    const auto own = own_.find(module.name);
    Coding coding = own == own_.end() ? *all_ : own->second;
    if (coding.bits == 0) coding.bits = bits_of(module, coding.group);
    const ExpressionRef &words = tensor(module.weight), &scales = tensor(module.scales),
                        &biases = tensor(module.biases);
    const std::string_view type = type_of_codes(coding.bits);
    if (type.empty())
      return input_error({}, fmt::format("has codes of {} bits; MLX has 2, 3, 4, 5, 6, and 8", coding.bits),
                         "correct `quantization` in config.json");
    Shape shape = words->shape;
    shape.dims[0] = kWordBits * shape.dims[0] / coding.bits;
    const bool fits = shape.dims[0] == coding.group * scales->shape.dims[0] &&
                      shape.dims[0] * coding.bits == kWordBits * words->shape.dims[0] && biases->shape == scales->shape;
    if (!fits)
      return input_error(
          {},
          fmt::format("its {} words, {} scales, and {} biases are not codes of {}", describe(words->shape),
                      describe(scales->shape), describe(biases->shape), described(coding)),
          "correct `quantization` in config.json, which can have an entry for each module");
    BOOST_OUTCOME_TRY(ExpressionRef values, as_type(words, type, shape));
    BOOST_OUTCOME_TRY(values, to_type(std::move(values), "F32"));
    const auto result = [&](Result<ExpressionRef> computed) { return rounded(std::move(computed), scales, biases); };
    BOOST_OUTCOME_TRY(ExpressionRef factors, to_type(scales, "F32"));
    BOOST_OUTCOME_TRY(values,
                      result(expressions::scale_blocks(std::move(values), std::move(factors), coding.group, 1)));
    BOOST_OUTCOME_TRY(ExpressionRef addends, to_type(biases, "F32"));
    return result(expressions::add_blocks(std::move(values), std::move(addends), coding.group, 1));
  }

  // MLX rounds the product and the sum to the type of the scales. That is done for weights that become this type;
  // others are computed in single precision, which is what MLX does after a conversion of scales and biases to it.
  Result<ExpressionRef> rounded(Result<ExpressionRef> values, const ExpressionRef& scales,
                                const ExpressionRef& biases) const {
    if (!values || scales->type != options_.target || biases->type != scales->type) return values;
    BOOST_OUTCOME_TRY(values, to_type(std::move(values).value(), scales->type->name));
    return to_type(std::move(values).value(), "F32");
  }

  QuantizedTensors& checkpoint_;
  const json::object& config_;
  const DecodeOptions& options_;
  std::vector<Module> modules_;
  std::optional<Coding> all_;          // of modules without one of their own; without bits, the shapes determine them
  std::map<std::string, Coding> own_;  // by module, named as in `checkpoint_`
};

}  // namespace

Status decode_mlx(QuantizedTensors& checkpoint, const json::object& config, const DecodeOptions& options) {
  return MlxCheckpoint(checkpoint, config, options).decode();
}

}  // namespace ggufmill::huggingface
