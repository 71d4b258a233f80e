// Weights of 8 bits that are multiplied by scales.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <numeric>
#include <optional>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Rows and columns of the blocks that share an E8M0 scale.
constexpr std::uint64_t kE8m0Block = 128;

// Rows and columns of the blocks, if `block` is a list of two.
struct BlockSize {
  std::uint64_t rows = 0, columns = 0;
};
std::optional<BlockSize> size_of(const json::array* block) {
  if (!block || block->size() != 2 || !block->at(0).is_int64() || !block->at(1).is_int64()) return {};
  return BlockSize{static_cast<std::uint64_t>(std::max<std::int64_t>(block->at(0).get_int64(), 0)),
                   static_cast<std::uint64_t>(std::max<std::int64_t>(block->at(1).get_int64(), 0))};
}

Result<ExpressionRef> scaled(const ExpressionRef& weights, const ExpressionRef& scales, const json::array* block) {
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(weights, "F32"));
  BOOST_OUTCOME_TRY(ExpressionRef factors, to_type(scales, "F32"));
  const Shape& shape = values->shape;
  std::uint64_t columns = shape.columns(), rows = 1;
  if (const std::optional<BlockSize> size = size_of(block))
    return expressions::scale_blocks(std::move(values), std::move(factors), size->columns, size->rows);
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

Result<ExpressionRef> scaled_by_exponents(const ExpressionRef& weights, const ExpressionRef& exponents) {
  constexpr float kBias = 127;
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(weights, "F32"));
  BOOST_OUTCOME_TRY(ExpressionRef factors, to_type(exponents, "F32"));
  BOOST_OUTCOME_TRY(factors, expressions::map(std::move(factors), *find_map_function("exp2"), -kBias));
  return expressions::scale_blocks(std::move(values), std::move(factors), kE8m0Block, kE8m0Block);
}

std::uint64_t blocks_in(std::uint64_t rows, std::uint64_t size) { return rows / size + (rows % size != 0); }

// Returns the number of ranks that the number of rows of the scales fits; 1 if it fits none.
std::uint64_t ranks_of(const ShardedRows& sharded, std::uint64_t rows, std::uint64_t scales, std::uint64_t block) {
  for (const std::uint64_t ranks : sharded.ranks)
    if (rows % ranks == 0 && scales == ranks * blocks_in(rows / ranks, block)) return ranks;
  return 1;
}

// Scales each rank's rows by its own blocks, and puts the rows of each part together.
Result<ExpressionRef> scaled_shards(const ExpressionRef& weights, const ExpressionRef& scales, const json::array* block,
                                    const ShardedRows& sharded) {
  const std::optional<BlockSize> size = size_of(block);
  const std::uint64_t rows = weights->shape.dims[1];
  if (std::accumulate(sharded.parts.begin(), sharded.parts.end(), std::uint64_t{0}) != rows)
    return input_error({}, fmt::format("has {} rows, but its parts have {}", rows, fmt::join(sharded.parts, " + ")));
  const std::uint64_t ranks = size && size->rows > 0 ? ranks_of(sharded, rows, scales->shape.dims[1], size->rows) : 1;
  if (ranks == 1) return scaled(weights, scales, block);
  for (const std::uint64_t part : sharded.parts)
    if (part % ranks != 0) return input_error({}, fmt::format("{} rows are not a multiple of {} ranks", part, ranks));
  const std::uint64_t in_rank = rows / ranks, scales_in_rank = blocks_in(in_rank, size->rows);
  std::vector<ExpressionRef> shards, pieces;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    BOOST_OUTCOME_TRY(const ExpressionRef own, expressions::slice(weights, 1, rank * in_rank, in_rank));
    BOOST_OUTCOME_TRY(const ExpressionRef factors,
                      expressions::slice(scales, 1, rank * scales_in_rank, scales_in_rank));
    BOOST_OUTCOME_TRY(shards.emplace_back(), scaled(own, factors, block));
  }
  std::uint64_t first = 0;
  for (const std::uint64_t part : sharded.parts) {
    for (const ExpressionRef& shard : shards) {
      BOOST_OUTCOME_TRY(pieces.emplace_back(), expressions::slice(shard, 1, first, part / ranks));
    }
    first += part / ranks;
  }
  return expressions::concat(std::move(pieces), 1);
}

}  // namespace

Status apply_scales(QuantizedTensors& checkpoint, std::size_t scales, const std::string& weight_name,
                    const json::array* block) {
  BOOST_OUTCOME_TRY(const std::size_t place, checkpoint.weight_of(weight_name, scales));
  NamedTensor& weight = checkpoint.tensors[place];
  const bool was_fp8 = weight.values->type->name.starts_with("F8_");
  const ExpressionRef& factors = checkpoint.tensors[scales].values;
  const auto sharded = checkpoint.sharded.find(weight_name);
  BOOST_OUTCOME_TRY(weight.values, checkpoint.of_tensor(weight_name, sharded == checkpoint.sharded.end()
                                                                         ? scaled(weight.values, factors, block)
                                                                         : scaled_shards(weight.values, factors, block,
                                                                                         sharded->second)));
  weight.was_fp8 = was_fp8;
  checkpoint.skipped.insert(scales);
  return ok();
}

// Applies the scales for blocks of rows and columns, `_scale_inv`. The scales of the activations are not used.
Status decode_fp8(QuantizedTensors& checkpoint) {
  const json::array* block = json_array(checkpoint.config, "weight_block_size");
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (name.ends_with("_scale_inv")) {
      BOOST_OUTCOME_TRY(apply_scales(checkpoint, i, name.substr(0, name.size() - 10), block));
    }
    if (name.ends_with(".qscale_weight")) {
      BOOST_OUTCOME_TRY(apply_scales(checkpoint, i, name.substr(0, name.size() - 13) + "weight", block));
    }
    if (name.ends_with(".activation_scale") || name.ends_with("_activation_scale") || name.ends_with(".qscale_act"))
      checkpoint.skipped.insert(i);
  }
  return ok();
}

// Decodes FP8 with one scale per row or per tensor; NVFP4 weights have already been repacked. The scales of the KV
// cache are not used.
Status decode_modelopt(QuantizedTensors& checkpoint) {
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (name.ends_with(".weight_scale") && !checkpoint.skipped.contains(i)) {
      if (checkpoint.places.contains(name.substr(0, name.size() - 6))) {
        BOOST_OUTCOME_TRY(apply_scales(checkpoint, i, name.substr(0, name.size() - 6), nullptr));
      }
      checkpoint.skipped.insert(i);
    }
    if (name.ends_with(".input_scale") || name.ends_with(".k_scale") || name.ends_with(".v_scale"))
      checkpoint.skipped.insert(i);
  }
  return ok();
}

// Returns true if experts are stored as MXFP4 beside weights of another method.
Result<bool> stores_mxfp4(const QuantizedTensors& checkpoint) {
  constexpr std::int64_t kBlock = 32;
  if (json_string(checkpoint.config, "store_dtype") != "mxfp4") return false;
  const json::value* const size = json_member(checkpoint.config, "mxfp4_block_size");
  if (size && *size != kBlock)
    return checkpoint.fault(
        fmt::format("'mxfp4_block_size' in the quantization config is {}, but blocks of MXFP4 have "
                    "{} elements",
                    json::serialize(*size), kBlock));
  return true;
}

// Applies scales that are powers of two, stored as X.scale beside X.weight: to blocks of FP8, or as the exponents of
// MXFP4, whose weights are bytes of two elements. With `store_dtype: mxfp4`, the latter are named X.weight_scale.
Status decode_e8m0(QuantizedTensors& checkpoint) {
  BOOST_OUTCOME_TRY(checkpoint.has_mxfp4, stores_mxfp4(checkpoint));
  const bool has_other_names = checkpoint.has_mxfp4;
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    const bool is_beside = has_other_names && name.ends_with(".weight_scale");
    if (!(is_beside || name.ends_with(".scale")) || checkpoint.tensors[i].values->type->name != "U8") continue;
    const auto found = checkpoint.places.find(is_beside ? name.substr(0, name.size() - 6)
                                                        : name.substr(0, name.size() - 5) + "weight");
    if (found == checkpoint.places.end()) continue;
    NamedTensor& weight = checkpoint.tensors[found->second];
    const std::string_view type = weight.values->type->name;
    if (type.starts_with("F8_")) {
      BOOST_OUTCOME_TRY(
          weight.values,
          checkpoint.of_tensor(weight.name, scaled_by_exponents(weight.values, checkpoint.tensors[i].values)));
      weight.was_fp8 = true;
      checkpoint.skipped.insert(i);
    } else if (type == "I8" || type == "U8") {
      BOOST_OUTCOME_TRY(repack_mxfp4(checkpoint, weight, i));
    }
  }
  return ok();
}

}  // namespace ggufmill::huggingface
