#include "stages/huggingface/checkpoint/compressed_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr const char* kFormatsHelp =
    "supported are float-quantized, int-quantized, naive-quantized, pack-quantized, nvfp4-pack-quantized, and "
    "mxfp4-pack-quantized";

Status add_target(const json::value& target, CompressedGroup& group) {
  if (!target.is_string()) return input_error({}, "a target of a group in config_groups is not a string");
  const std::string_view text = target.get_string();
  if (text.starts_with("re:")) {
    BOOST_OUTCOME_TRY(group.patterns.emplace_back(), Pattern::compile(fmt::format("\\A(?:{})", text.substr(3))));
    return ok();
  }
  group.names.insert(std::string(text));
  if (text.find('.') == text.npos) group.is_for_classes = true;
  return ok();
}

Result<ExpressionRef> packed_values(QuantizedTensors& checkpoint, const std::string& base, std::string_view type,
                                    std::uint64_t in_word, std::uint64_t group) {
  BOOST_OUTCOME_TRY(const ExpressionRef words, checkpoint.values_of(base + "_packed"));
  BOOST_OUTCOME_TRY(ExpressionRef scales, checkpoint.values_of(base + "_scale"));
  BOOST_OUTCOME_TRY(const ExpressionRef dims, checkpoint.values_of(base + "_shape"));
  BOOST_OUTCOME_TRY(const auto shape, read_numbers<std::int64_t>(*dims, "I64"));
  if (shape.size() != 2 || shape[0] <= 0 || shape[1] <= 0)
    return input_error({}, "the stored shape does not have two dimensions");
  const auto rows = static_cast<std::uint64_t>(shape[0]), columns = static_cast<std::uint64_t>(shape[1]);
  BOOST_OUTCOME_TRY(ExpressionRef values, unpack_words(words, type, in_word));
  BOOST_OUTCOME_TRY(
      values,
      expressions::reshape(std::move(values), Shape{2, {in_word * words->shape.dims[0], words->shape.dims[1], 1, 1}}));
  BOOST_OUTCOME_TRY(values, expressions::slice(std::move(values), 0, 0, columns));
  if (values->shape.dims[1] != rows)
    return input_error({}, fmt::format("{} rows, expected {}", values->shape.dims[1], rows));
  BOOST_OUTCOME_TRY(scales, to_type(std::move(scales), "F32"));
  ExpressionRef offsets;
  if (checkpoint.places.contains(base + "_zero_point")) {
    BOOST_OUTCOME_TRY(const ExpressionRef zeros, checkpoint.values_of(base + "_zero_point"));
    BOOST_OUTCOME_TRY(offsets, unpack_words(zeros, type, in_word));
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

// Decodes integers packed along the columns, with scales, and zero points packed along the rows.
Status decode_packed(QuantizedTensors& checkpoint, const std::string& weight, const CompressedGroup& group) {
  if (group.format != kPackedFormat)
    return checkpoint.fault(
        fmt::format("{} is packed, but the format of its group is {}", quoted_name(weight), quoted_name(group.format)),
        kFormatsHelp);
  BOOST_OUTCOME_TRY(const auto packed, word_packing(checkpoint, group.weights, "num_bits"));
  const json::value* const size = json_member(group.weights, "group_size");
  if (!size || !size->is_int64() || size->get_int64() <= 0)
    return checkpoint.fault("'group_size' is missing in the quantization config");
  BOOST_OUTCOME_TRY(ExpressionRef values,
                    checkpoint.of_tensor(weight, packed_values(checkpoint, weight, packed.first, packed.second,
                                                               static_cast<std::uint64_t>(size->get_int64()))));
  checkpoint.make(weight, std::move(values));
  return ok();
}

// Multiplies 8-bit weights by their scales. Those of packed weights are used with the weights.
Status decode_scaled(QuantizedTensors& checkpoint, std::size_t scales, const std::string& weight,
                     const CompressedGroup& group) {
  if (group.format == kPackedFormat || group.format == kNvfp4Format) return ok();
  if (group.format != "float-quantized" && group.format != "int-quantized" && group.format != "naive-quantized")
    return checkpoint.fault(fmt::format("unknown compressed-tensors format {}", quoted_name(group.format)),
                            kFormatsHelp);
  return apply_scales(checkpoint, scales, weight, json_array(group.weights, "block_structure"));
}

}  // namespace

Result<CompressedGroups> CompressedGroups::read(const json::value& config) {
  const std::string format(json_string(config, "format").value_or(""));
  CompressedGroups result;
  const json::value* const groups = json_member(config, "config_groups");
  if (!groups) {
    result.groups_.push_back({format, {}, {}, {}, true});
    return result;
  }
  if (!groups->is_object() || groups->get_object().empty())
    return input_error({}, "config_groups is not an object with a group for each kind of weight");
  for (const auto& [name, value] : groups->get_object()) {
    CompressedGroup group;
    group.format = json_string(value, "format").value_or(format);
    if (const json::value* const weights = json_member(value, "weights")) group.weights = *weights;
    const json::array* const targets = json_array(value, "targets");
    group.is_for_classes = !targets;
    if (targets)
      for (const json::value& target : *targets) {
        BOOST_OUTCOME_TRY(add_target(target, group));
      }
    result.groups_.push_back(std::move(group));
  }
  return result;
}

Result<const CompressedGroup*> CompressedGroups::group_of(std::string_view module) const {
  if (groups_.size() == 1) return &groups_.front();
  for (const CompressedGroup& group : groups_)
    if (group.names.contains(std::string(module))) return &group;
  for (const CompressedGroup& group : groups_)
    for (const Pattern& pattern : group.patterns) {
      BOOST_OUTCOME_TRY(const bool matches, pattern.matches(module));
      if (matches) return &group;
    }
  for (const CompressedGroup& group : groups_)
    if (group.is_for_classes) return &group;
  return input_error({}, fmt::format("{} is quantized, but no group in config_groups is for it", quoted_name(module)));
}

bool CompressedGroups::have_format(std::string_view format) const {
  return std::ranges::any_of(groups_, [&](const CompressedGroup& group) { return group.format == format; });
}

Result<const CompressedGroup*> group_of(const QuantizedTensors& checkpoint, const CompressedGroups& groups,
                                        std::string_view weight) {
  if (weight.ends_with(".weight")) weight.remove_suffix(7);
  auto group = groups.group_of(weight);
  if (!group) return checkpoint.fault(group.error().what);
  return group.value();
}

// Decodes the weights of each group by its format; those in NVFP4 have already been repacked.
Status decode_compressed(QuantizedTensors& checkpoint, const CompressedGroups& groups) {
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    const bool is_packed = name.ends_with(".weight_packed");
    if (checkpoint.skipped.contains(i) || !(is_packed || name.ends_with(".weight_scale"))) continue;
    const std::string weight = name.substr(0, name.size() - (is_packed ? 7 : 6));
    BOOST_OUTCOME_TRY(const CompressedGroup* const group, group_of(checkpoint, groups, weight));
    BOOST_OUTCOME_TRY(is_packed ? decode_packed(checkpoint, weight, *group)
                                : decode_scaled(checkpoint, i, weight, *group));
  }
  return ok();
}

Status repack_compressed_mxfp4(QuantizedTensors& checkpoint, const CompressedGroups& groups) {
  if (!groups.have_format(kMxfp4Format)) return ok();
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    if (!name.ends_with(".weight_packed")) continue;
    const std::string weight = name.substr(0, name.size() - 7);
    BOOST_OUTCOME_TRY(const CompressedGroup* const group, group_of(checkpoint, groups, weight));
    if (group->format != kMxfp4Format) continue;
    BOOST_OUTCOME_TRY(const std::size_t scales, checkpoint.place_of(weight + "_scale"));
    BOOST_OUTCOME_TRY(repack_mxfp4(checkpoint, checkpoint.tensors[i], scales));
    checkpoint.tensors[i].name = weight;
  }
  return ok();
}

}  // namespace ggufmill::huggingface
