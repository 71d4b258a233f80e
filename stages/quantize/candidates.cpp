#include "stages/quantize/candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// By size; of two types of one size, the newer one, which has the greater id, is first.
std::vector<const TypeInfo*> candidates_for(CandidateFor rows) {
  std::vector<const TypeInfo*> types;
  for (const TypeInfo& type : built_in_types())
    if (type.facts.candidate == rows || type.facts.candidate == CandidateFor::kAllRows) types.push_back(&type);
  std::ranges::sort(types, {}, [](const TypeInfo* type) {
    return std::pair(type->bits_per_weight(), -static_cast<std::int64_t>(type->id));
  });
  return types;
}

bool fits(const TypeInfo& type, const Tensor& tensor) { return tensor.shape().columns() % type.block_elements == 0; }

// Returns a pattern that matches the names of the tensors: with any number of a layer, like rules of users.
std::string names_pattern(const std::vector<const Tensor*>& tensors) {
  std::vector<std::string> patterns;
  for (const Tensor* tensor : tensors) {
    std::string pattern;
    bool is_number = false;
    for (const char c : tensor->name) {
      const bool is_digit = '0' <= c && c <= '9';
      if (is_digit && !is_number) pattern += "\\d+";
      if (!is_digit) pattern += c == '.' ? "\\." : std::string(1, c);
      is_number = is_digit;
    }
    if (std::ranges::find(patterns, pattern) == patterns.end()) patterns.push_back(std::move(pattern));
  }
  return patterns.size() == 1 ? patterns[0] : fmt::format("^({})$", fmt::join(patterns, "|"));
}

// Returns the error of tensors whose rows fit no candidate. Its help is about the rows of the first one.
Error no_candidate_fits(const TargetOptions& options, const std::vector<const Tensor*>& tensors) {
  std::vector<std::string> names;
  for (const Tensor* tensor : tensors)
    names.push_back(fmt::format("{} ({})", quoted_name(tensor->name), counted(tensor->shape().columns(), "value")));
  const Tensor& first = *tensors.front();
  const std::uint64_t columns = first.shape().columns();
  std::vector<std::string_view> types;
  for (const TypeInfo* type : narrow_candidates())
    if (fits(*type, first)) types.push_back(type->name);
  return error_at(
      options.origin,
      fmt::format("no candidate fits the rows of {}: {}", counted(names.size(), "tensor"), list_some(names)),
      types.empty()
          ? fmt::format("rows of {} values fit only types without blocks; set one for {}: tensors: [{{match: '{}', "
                        "type: F16}}]",
                        columns, tensors.size() == 1 ? "it" : "all of them", names_pattern(tensors))
          : fmt::format("add types for rows of {} values to `candidates`: {}", columns, fmt::join(types, ", ")));
}

}  // namespace

std::vector<const TypeInfo*> wide_candidates() { return candidates_for(CandidateFor::kWideRows); }
std::vector<const TypeInfo*> narrow_candidates() { return candidates_for(CandidateFor::kNarrowRows); }

Result<std::vector<std::size_t>> first_of_groups(const TargetOptions& options, const Model& model,
                                                 const std::vector<std::size_t>& open) {
  std::vector<std::size_t> first;
  const auto first_of = [&](std::size_t place) {
    while (first[place] != place) place = first[place];
    return place;
  };
  for (std::size_t place = 0; place < open.size(); ++place) first.push_back(place);
  for (const TypeGroup& group : options.groups) {
    std::map<std::uint64_t, std::size_t> by_layer;
    for (std::size_t place = 0; place < open.size(); ++place) {
      const std::string& name = model.tensors[open[place]].name;
      BOOST_OUTCOME_TRY(const bool matches, group.match.matches(name));
      if (!matches) continue;
      const auto known = by_layer.try_emplace(layer_of(name).value_or(~std::uint64_t{0}), place).first;
      const std::size_t a = first_of(known->second), b = first_of(place);
      first[std::max(a, b)] = std::min(a, b);
    }
  }
  for (std::size_t place = 0; place < open.size(); ++place) first[place] = first_of(place);
  return first;
}

Result<std::vector<Candidates>> candidates_of(const TargetOptions& options, const Model& model,
                                              const std::vector<std::size_t>& open) {
  std::vector<Candidates> all(open.size(), options.candidates);
  const auto tensor_at = [&](std::size_t place) -> const Tensor& { return model.tensors[open[place]]; };
  if (!options.narrow_candidates.empty()) {
    BOOST_OUTCOME_TRY(const std::vector<std::size_t> first, first_of_groups(options, model, open));
    std::vector<bool> is_narrow(open.size());  // by the first place of a group
    for (std::size_t place = 0; place < open.size(); ++place)
      if (tensor_at(place).shape().columns() % kWideColumns != 0) is_narrow[first[place]] = true;
    for (std::size_t place = 0; place < open.size(); ++place)
      if (is_narrow[first[place]]) all[place] = options.narrow_candidates;
  }
  std::vector<const Tensor*> unfit;
  for (std::size_t place = 0; place < open.size(); ++place)
    if (std::ranges::none_of(all[place], [&](const TypeInfo* type) { return fits(*type, tensor_at(place)); }))
      unfit.push_back(&tensor_at(place));
  if (!unfit.empty()) return no_candidate_fits(options, unfit);
  return all;
}

}  // namespace ggufmill
