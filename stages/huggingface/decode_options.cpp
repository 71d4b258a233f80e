#include "stages/huggingface/decode_options.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/converted_tensors.h"
#include "stages/huggingface/map/tensor_map.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

Result<std::vector<std::uint64_t>> ranks_of(const ShardRule& rule, const Facts& facts) {
  BOOST_OUTCOME_TRY(const json::value value, facts.evaluate(rule.ranks));
  std::vector<std::uint64_t> ranks;
  if (const json::array* const list = value.if_array())
    for (const json::value& each : *list)
      if (const auto number = whole_number(each); number && *number > 0)
        ranks.push_back(static_cast<std::uint64_t>(*number));
  if (!ranks.empty()) return ranks;
  return input_error((facts.folder() / "config.json").string(),
                     fmt::format("{} is not a list of rank counts", shown(value)),
                     fmt::format("required by the map at {}", rule.ranks.place));
}

// Adds the tensors that match the rule.
Status add_sharded(const ShardRule& rule, const Facts& facts, const std::vector<NamedTensor>& tensors,
                   std::unordered_map<std::string, ShardedRows>& into) {
  std::vector<CountByLayer> parts;
  std::vector<std::uint64_t> ranks;
  for (const NamedTensor& tensor : tensors) {
    const auto match = rule.from.match(tensor.name);
    if (!match || into.contains(tensor.name)) continue;
    if (ranks.empty()) {
      BOOST_OUTCOME_TRY(ranks, ranks_of(rule, facts));
      for (const ValueRule& part : rule.parts) {
        BOOST_OUTCOME_TRY(parts.emplace_back(), facts.count_by_layer(part, "the number of rows"));
      }
    }
    ShardedRows& sharded = into[tensor.name];
    sharded.ranks = ranks;
    for (const CountByLayer& part : parts) sharded.parts.push_back(part.in(match->numbers.layer));
  }
  return ok();
}

}  // namespace

Result<DecodeOptions> decode_options(const Architecture& architecture, const Facts& facts,
                                     const std::vector<NamedTensor>& tensors, Blocks blocks, OutType out_type) {
  DecodeOptions options;
  if (out_type != OutType::kAuto) options.target = &tensor_type_of(out_type);
  options.blocks = blocks;
  for (const ShardRule& rule : architecture.shards) {
    BOOST_OUTCOME_TRY(add_sharded(rule, facts, tensors, options.sharded));
  }
  BOOST_OUTCOME_TRY(options.rename, module_renamer(architecture, facts));
  return options;
}

}  // namespace ggufmill::huggingface
