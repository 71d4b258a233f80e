// Weights of bitsandbytes. 4 bits (nf4, fp4): the weight X has two codes in a byte, the first in the high bits, for
// runs of values that share a factor in X.absmax; X.quant_map has the value of every code, and
// X.quant_state.bitsandbytes__nf4 a JSON text with shape and block size. With double quantization, X.absmax has codes
// of 8 bits itself. 8 bits: X.weight, and in X.SCB the largest magnitude of each row, which stands for 127. Source of
// the layouts: bitsandbytes/functional.py and nn/modules.py of bitsandbytes (MIT).

#include <fmt/format.h>

#include <string>
#include <vector>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kState = ".quant_state.bitsandbytes__";
constexpr std::uint64_t kBytes = 256;            // different ones
constexpr double kMaxValues = 9007199254740991;  // of a weight
constexpr const char* kDamagedCodes = "the checkpoint is damaged: download or save it again";

// The contents of the JSON text beside a weight.
struct State {
  Shape shape;
  std::uint64_t block = 0;         // values with the same factor
  std::uint64_t nested_block = 0;  // factors with the same factor
  float nested_offset = 0;
};

Result<State> read_state(const Expression& tensor) {
  BOOST_OUTCOME_TRY(const auto bytes, read_small_tensor(tensor));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  BOOST_OUTCOME_TRY(const json::value value, parse_checkpoint_json({}, text));
  State state;
  const auto number = [&](std::string_view name) -> std::uint64_t {
    const json::value* const member = json_member(value, name);
    const auto whole = member ? whole_number(*member) : std::nullopt;
    return whole && *whole > 0 ? static_cast<std::uint64_t>(*whole) : 0;
  };
  state.block = number("blocksize");
  state.nested_block = number("nested_blocksize");
  if (const json::value* const offset = json_member(value, "nested_offset"))
    state.nested_offset = static_cast<float>(number_value(*offset).value_or(0));
  const json::array* const dims = json_array(value, "shape");
  double values = 1;
  bool fits = state.block != 0 && dims && !dims->empty() && dims->size() <= state.shape.dims.size();
  for (std::size_t i = 0; fits && i < dims->size(); ++i) {
    const auto dim = whole_number((*dims)[dims->size() - 1 - i]);
    fits = dim && *dim > 0 && *dim <= std::int64_t{1} << 40;
    if (fits) state.shape.dims[state.shape.rank++] = static_cast<std::uint64_t>(*dim);
    values *= fits ? static_cast<double>(*dim) : 1;
  }
  if (!fits || values > kMaxValues)
    return input_error({},
                       fmt::format("{} is not a state of quantization: {}", quoted_name(text, 100),
                                   fits ? "the weight would have 2^53 values or more"
                                        : "`blocksize` and `shape` are not positive numbers"),
                       kDamagedCodes);
  return state;
}

Result<ExpressionRef> flat(ExpressionRef values) {
  const Shape shape{1, {values->shape.elements(), 1, 1, 1}};
  return expressions::reshape(std::move(values), shape);
}

// Returns a table for expressions::lookup() from the values of 16 or 256 codes.
Result<ExpressionRef> table_of(const Expression& map, std::size_t codes) {
  BOOST_OUTCOME_TRY(const std::vector<float> values, read_small_values(map));
  if (values.size() != codes) return input_error({}, fmt::format("has {} values, not {}", values.size(), codes));
  std::vector<float> table;
  for (std::size_t byte = 0; byte < kBytes; ++byte)
    if (codes == kBytes)
      table.push_back(values[byte]);
    else
      table.insert(table.end(), {values[byte >> 4], values[byte & 15]});
  const Shape shape{1, {table.size(), 1, 1, 1}};
  return expressions::constant(shape, std::move(table));
}

class BitsAndBytes {
 public:
  explicit BitsAndBytes(QuantizedTensors& checkpoint) : checkpoint_(checkpoint) {}

  Status decode() {
    for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const std::string name = checkpoint_.tensors[i].name;
      if (const std::size_t at = name.find(kState); at != name.npos) {
        BOOST_OUTCOME_TRY(decode_4_bits(name.substr(0, at), name));
      } else if (name.ends_with(".SCB")) {
        BOOST_OUTCOME_TRY(decode_8_bits(name.substr(0, name.size() - 4), i));
      }
    }
    return ok();
  }

 private:
  Status decode_4_bits(const std::string& name, const std::string& state_name) {
    BOOST_OUTCOME_TRY(const std::size_t place, checkpoint_.place_of(name));
    BOOST_OUTCOME_TRY(const ExpressionRef state_text, checkpoint_.values_of(state_name));
    BOOST_OUTCOME_TRY(const State state, checkpoint_.of_tensor(state_name, read_state(*state_text)));
    BOOST_OUTCOME_TRY(const ExpressionRef factors, factors_of(name, state));
    BOOST_OUTCOME_TRY(const ExpressionRef table, table_in(name + ".quant_map", 16));
    NamedTensor& weight = checkpoint_.tensors[place];
    BOOST_OUTCOME_TRY(weight.values, checkpoint_.of_tensor(name, values_of(weight.values, state, factors, table)));
    weight.stored = nullptr;
    return ok();
  }

  // Tables that are equal become one, which plans then contain once.
  Result<ExpressionRef> table_in(const std::string& name, std::size_t codes) {
    BOOST_OUTCOME_TRY(const ExpressionRef map, checkpoint_.values_of(name));
    BOOST_OUTCOME_TRY(ExpressionRef table, checkpoint_.of_tensor(name, table_of(*map, codes)));
    for (const ExpressionRef& other : tables_)
      if (has_same_values(*table, *other)) return other;
    tables_.push_back(table);
    return table;
  }

  // Returns the factors in the order of the blocks, in one dimension.
  Result<ExpressionRef> factors_of(const std::string& weight, const State& state) {
    const std::string name = weight + ".absmax";
    BOOST_OUTCOME_TRY(ExpressionRef factors, checkpoint_.values_of(name));
    const bool is_nested = checkpoint_.places.contains(weight + ".nested_absmax");
    if (!is_nested) {
      BOOST_OUTCOME_TRY(factors, checkpoint_.of_tensor(name, to_type(std::move(factors), "F32")));
      return checkpoint_.of_tensor(name, flat(std::move(factors)));
    }
    BOOST_OUTCOME_TRY(const ExpressionRef nested, checkpoint_.values_of(weight + ".nested_absmax"));
    BOOST_OUTCOME_TRY(const ExpressionRef table, table_in(weight + ".nested_quant_map", kBytes));
    return checkpoint_.of_tensor(name, nested_factors(std::move(factors), nested, table, state));
  }

  static Result<ExpressionRef> nested_factors(ExpressionRef codes, const ExpressionRef& nested,
                                              const ExpressionRef& table, const State& state) {
    if (state.nested_block == 0) return input_error({}, "'nested_blocksize' is missing in the state of quantization");
    BOOST_OUTCOME_TRY(codes, flat(std::move(codes)));
    BOOST_OUTCOME_TRY(check_factors(*nested, codes->shape.elements(), state.nested_block));
    BOOST_OUTCOME_TRY(ExpressionRef values, expressions::lookup(std::move(codes), table));
    BOOST_OUTCOME_TRY(ExpressionRef scales, to_type(nested, "F32"));
    BOOST_OUTCOME_TRY(scales, flat(std::move(scales)));
    BOOST_OUTCOME_TRY(values, expressions::scale_blocks(std::move(values), std::move(scales), state.nested_block, 1));
    return expressions::map(std::move(values), *find_map_function("add"), state.nested_offset);
  }

  static Status check_factors(const Expression& factors, std::uint64_t values, std::uint64_t block) {
    const std::uint64_t given = factors.shape.elements(), needed = values / block + (values % block != 0);
    if (given == needed) return ok();
    return input_error({},
                       fmt::format("{} in blocks of {} need {}, but there {} {}", counted(values, "value"), block,
                                   counted(needed, "factor"), given == 1 ? "is" : "are", given),
                       kDamagedCodes);
  }

  // Blocks run across the ends of rows. Where rows consist of whole blocks, rows can be read one by one.
  static Result<ExpressionRef> values_of(const ExpressionRef& codes, const State& state, ExpressionRef factors,
                                         const ExpressionRef& table) {
    const std::uint64_t count = state.shape.elements(), bytes = count / 2 + count % 2;
    if (!codes->as_extent() || codes->as_extent()->bytes != bytes)
      return input_error({},
                         fmt::format("{} of {} are not the codes of 4 bits that {} values of {} need",
                                     describe(codes->shape), codes->type->name, count, describe(state.shape)),
                         kDamagedCodes);
    BOOST_OUTCOME_TRY(check_factors(*factors, count, state.block));
    const bool in_rows = state.shape.dims[0] % state.block == 0 && state.shape.dims[0] % 2 == 0;
    Shape packed = state.shape;
    if (in_rows)
      packed.dims[0] /= 2;
    else
      packed = Shape{1, {bytes, 1, 1, 1}};
    BOOST_OUTCOME_TRY(ExpressionRef values, as_type(codes, "U8", packed));
    BOOST_OUTCOME_TRY(values, expressions::lookup(std::move(values), table));
    if (in_rows) {
      Shape blocks = state.shape;
      blocks.dims[0] /= state.block;
      BOOST_OUTCOME_TRY(factors, expressions::reshape(std::move(factors), blocks));
    } else {
      BOOST_OUTCOME_TRY(values, expressions::slice(std::move(values), 0, 0, count));
    }
    BOOST_OUTCOME_TRY(values, expressions::scale_blocks(std::move(values), std::move(factors), state.block, 1));
    return expressions::reshape(std::move(values), state.shape);
  }

  Status decode_8_bits(const std::string& module, std::size_t scales) {
    const std::string name = module + ".weight";
    BOOST_OUTCOME_TRY(const std::size_t place, checkpoint_.weight_of(name, scales));
    const std::string format = module + ".weight_format";
    if (checkpoint_.places.contains(format)) {
      BOOST_OUTCOME_TRY(const ExpressionRef number, checkpoint_.values_of(format));
      BOOST_OUTCOME_TRY(const auto bytes, checkpoint_.of_tensor(format, read_small_tensor(*number)));
      for (const std::byte byte : bytes)
        if (byte != std::byte{0})
          return checkpoint_.of_tensor(
              name, input_error({},
                                "bitsandbytes stored the codes in the order of a GPU's tiles, and only codes in rows "
                                "are supported",
                                "load the model with bitsandbytes, call `model.dequantize()`, save it, and convert "
                                "the result"));
    }
    NamedTensor& weight = checkpoint_.tensors[place];
    BOOST_OUTCOME_TRY(weight.values,
                      checkpoint_.of_tensor(name, values_of_8_bits(weight.values, checkpoint_.tensors[scales].values)));
    weight.stored = nullptr;
    checkpoint_.skipped.insert(scales);
    return ok();
  }

  static Result<ExpressionRef> values_of_8_bits(const ExpressionRef& codes, ExpressionRef scales) {
    constexpr float kUnit = 7.874015718698502e-3f;  // 1 / 127 as bitsandbytes rounds it
    if (codes->type->name != "I8" || codes->shape.rank != 2)
      return input_error({},
                         fmt::format("{} of {} are not codes of 8 bits", describe(codes->shape), codes->type->name));
    BOOST_OUTCOME_TRY(ExpressionRef values, to_type(codes, "F32"));
    BOOST_OUTCOME_TRY(scales, to_type(std::move(scales), "F32"));
    BOOST_OUTCOME_TRY(scales, expressions::reshape(std::move(scales), Shape{2, {1, codes->shape.dims[1], 1, 1}}));
    BOOST_OUTCOME_TRY(values, expressions::scale_blocks(std::move(values), std::move(scales), codes->shape.dims[0], 1));
    return expressions::map(std::move(values), *find_map_function("multiply"), kUnit);
  }

  QuantizedTensors& checkpoint_;
  std::vector<ExpressionRef> tables_;
};

}  // namespace

Status decode_bitsandbytes(QuantizedTensors& checkpoint) { return BitsAndBytes(checkpoint).decode(); }

}  // namespace ggufmill::huggingface
