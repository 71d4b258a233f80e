// Weights of integers that are packed in 32-bit words: GPTQ and AWQ.

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Transposes {out, groups} to {groups, out}.
Result<ExpressionRef> turned(ExpressionRef scales) {
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(std::move(scales), "F32"));
  return expressions::transpose(std::move(values), {1, 0});
}

// Returns true if the groups are consecutive runs of columns of equal length.
Result<bool> are_in_order(const Expression& groups, std::uint64_t columns, std::uint64_t count) {
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

Result<ExpressionRef> gptq_values(QuantizedTensors& checkpoint, const std::string& base, std::string_view type,
                                  std::uint64_t in_word, bool less_one) {
  BOOST_OUTCOME_TRY(const ExpressionRef words, checkpoint.values_of(base + ".qweight"));
  BOOST_OUTCOME_TRY(const ExpressionRef zeros, checkpoint.values_of(base + ".qzeros"));
  BOOST_OUTCOME_TRY(const ExpressionRef scales, checkpoint.values_of(base + ".scales"));
  BOOST_OUTCOME_TRY(const ExpressionRef groups, checkpoint.values_of(base + ".g_idx"));
  const std::uint64_t columns = in_word * words->shape.dims[1], rows = words->shape.dims[0];
  const std::uint64_t count = scales->shape.dims[1];
  BOOST_OUTCOME_TRY(const bool in_order, are_in_order(*groups, columns, count));
  BOOST_OUTCOME_TRY(ExpressionRef values, unpack_words(words, type, in_word));
  BOOST_OUTCOME_TRY(values, expressions::transpose(std::move(values), {0, 2, 1}));
  BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{2, {columns, rows, 1, 1}}));
  BOOST_OUTCOME_TRY(ExpressionRef offsets, unpack_words(zeros, type, in_word));
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

Result<ExpressionRef> awq_integers(const ExpressionRef& words) {
  BOOST_OUTCOME_TRY(ExpressionRef values, unpack_words(words, "U4", 8));
  const std::uint64_t columns = words->shape.dims[0], rows = words->shape.dims[1];
  BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{4, {4, 2, columns, rows}}));
  BOOST_OUTCOME_TRY(values, expressions::transpose(std::move(values), {1, 0, 2, 3}));
  BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{2, {8 * columns, rows, 1, 1}}));
  return expressions::transpose(std::move(values), {1, 0});
}

Result<ExpressionRef> awq_values(QuantizedTensors& checkpoint, const std::string& base) {
  BOOST_OUTCOME_TRY(const ExpressionRef words, checkpoint.values_of(base + ".qweight"));
  BOOST_OUTCOME_TRY(const ExpressionRef zeros, checkpoint.values_of(base + ".qzeros"));
  BOOST_OUTCOME_TRY(const ExpressionRef scales, checkpoint.values_of(base + ".scales"));
  const std::uint64_t columns = words->shape.dims[1], count = scales->shape.dims[1];
  if (count == 0 || columns % count != 0)
    return input_error({}, fmt::format("{} columns in {} groups", columns, count));
  BOOST_OUTCOME_TRY(ExpressionRef values, awq_integers(words));
  BOOST_OUTCOME_TRY(ExpressionRef offsets, awq_integers(zeros));
  BOOST_OUTCOME_TRY(ExpressionRef factors, turned(scales));
  return expressions::scale_blocks(std::move(values), std::move(factors), columns / count, 1, std::move(offsets));
}

}  // namespace

Result<std::pair<std::string_view, std::uint64_t>> word_packing(const QuantizedTensors& checkpoint,
                                                                const json::value& config, std::string_view name) {
  const json::value* value = json_member(config, name);
  const std::int64_t bits = value && value->is_int64() ? value->get_int64() : 0;
  if (bits == 2) return std::pair(std::string_view("U2"), std::uint64_t{16});
  if (bits == 4) return std::pair(std::string_view("U4"), std::uint64_t{8});
  if (bits == 8) return std::pair(std::string_view("U8"), std::uint64_t{4});
  return checkpoint.fault(
      fmt::format("'{}' in the quantization config is {}", name, value ? json::serialize(*value) : "missing"),
      "2, 4, and 8 bits are supported");
}

Result<ExpressionRef> unpack_words(const ExpressionRef& words, std::string_view type, std::uint64_t in_word) {
  const Shape& shape = words->shape;
  if (shape.rank != 2 || words->type->block_bytes != 4)
    return input_error({}, fmt::format("{} of {} is not rows of packed words", describe(shape), words->type->name));
  Shape wide{3, {in_word, shape.dims[0], shape.dims[1], 1}};
  if (type != "U8") wide = Shape{2, {in_word * shape.dims[0], shape.dims[1], 1, 1}};  // blocks run along rows
  BOOST_OUTCOME_TRY(ExpressionRef integers, as_type(words, type, wide));
  BOOST_OUTCOME_TRY(integers, to_type(std::move(integers), "F32"));
  return expressions::reshape(std::move(integers), Shape{3, {in_word, shape.dims[0], shape.dims[1], 1}});
}

// Decodes GPTQ: words along the rows of a transposed matrix, zero points stored minus one unless
// `checkpoint_format` is not "gptq".
Status decode_gptq(QuantizedTensors& checkpoint) {
  BOOST_OUTCOME_TRY(const auto packed, word_packing(checkpoint, checkpoint.config, "bits"));
  const bool less_one = json_string(checkpoint.config, "checkpoint_format").value_or("gptq") == "gptq";
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (!name.ends_with(".qweight")) continue;
    const std::string base = name.substr(0, name.size() - 8);
    BOOST_OUTCOME_TRY(ExpressionRef values,
                      checkpoint.of_tensor(base, gptq_values(checkpoint, base, packed.first, packed.second, less_one)));
    checkpoint.make(base + ".weight", std::move(values));
  }
  return ok();
}

// Decodes AWQ: like GPTQ, but with words along the columns before transposition, and the integers of a word in the
// order 0, 2, 4, 6, 1, 3, 5, 7.
Status decode_awq(QuantizedTensors& checkpoint) {
  BOOST_OUTCOME_TRY(const auto packed, word_packing(checkpoint, checkpoint.config,
                                                    json_member(checkpoint.config, "bits") ? "bits" : "w_bit"));
  if (packed.second != 8) return checkpoint.fault("AWQ is supported with 4 bits only");
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (!name.ends_with(".qweight")) continue;
    const std::string base = name.substr(0, name.size() - 8);
    BOOST_OUTCOME_TRY(ExpressionRef values, checkpoint.of_tensor(base, awq_values(checkpoint, base)));
    checkpoint.make(base + ".weight", std::move(values));
  }
  return ok();
}

}  // namespace ggufmill::huggingface
