#include "stages/huggingface/checkpoint/compressed_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

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

}  // namespace ggufmill::huggingface
