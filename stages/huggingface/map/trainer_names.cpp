#include "stages/huggingface/map/trainer_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include "stages/huggingface/map/tensor_map.h"

namespace ggufmill::huggingface {
namespace {

// Words that no model uses: torch.compile, FSDP, activation checkpointing, Lightning, fairscale.
constexpr std::string_view kWrappers[] = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module",
                                          "_forward_module", "_fpw_module"};
// Words that trainers put before all names: DataParallel, DeepSpeed, PEFT, TRL. The name of a model that contains the
// other is a word as well.
constexpr std::string_view kModel = "model";
constexpr std::string_view kPrefixes[] = {"module", kModel, "base_model", "pretrained_model"};

// Returns a test that is true if a map drops a name, or has a rule for it under any condition.
Result<NameTest> name_test(const Architecture& architecture, const Facts& facts) {
  BOOST_OUTCOME_TRY(ModuleRenamer rename, name_renamer(architecture, facts));
  return NameTest([rename = std::move(rename), &architecture](const std::string& name) {
    const auto renamed = rename(name);
    if (!renamed || !renamed.value()) return true;
    const auto matches = [&](const NamePattern& pattern) { return pattern.match(*renamed.value()).has_value(); };
    return std::ranges::any_of(architecture.tensors, [&](const CheckpointRule& rule) {
      return std::ranges::any_of(rule.from, matches) ||
             std::ranges::any_of(
                 rule.outputs, [&](const TensorOutput& output) { return std::ranges::any_of(output.parts, matches); });
    });
  });
}

std::size_t count_known(const std::vector<std::string>& names, const NameTest& is_known) {
  return static_cast<std::size_t>(std::ranges::count_if(names, is_known));
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string common_first_word(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const std::string word = names[0].substr(0, names[0].find('.') + 1);
  const bool is_common = word.size() > 1 && std::ranges::all_of(names, [&](const std::string& name) {
                           return name.size() > word.size() && name.starts_with(word);
                         });
  return is_common ? word.substr(0, word.size() - 1) : std::string();
}

std::string without_wrappers(std::string_view name) {
  return without(name, [](std::string_view word) { return std::ranges::find(kWrappers, word) != std::end(kWrappers); });
}

Result<std::vector<std::string>> remove_trainer_names(const Architecture& architecture, const Facts& facts,
                                                      std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> removed;  // names by word
  for (const NamedTensor& tensor : tensors) {
    std::set<std::string_view> wrappers;  // in this name, each once
    names.push_back(without(tensor.name, [&](std::string_view word) {
      const bool is_one = std::ranges::find(kWrappers, word) != std::end(kWrappers);
      if (is_one) wrappers.insert(word);
      return is_one;
    }));
    for (const std::string_view word : wrappers) ++removed[std::string(word)];
  }
  std::optional<NameTest> is_known;
  for (;;) {
    const std::string word = common_first_word(names);
    if (std::ranges::find(kPrefixes, word) == std::end(kPrefixes)) break;
    if (!is_known) {
      BOOST_OUTCOME_TRY(is_known, name_test(architecture, facts));
    }
    // More than one word may stand before the names.
    std::vector<std::string> shorter = names;
    std::vector<std::string> words;
    const std::size_t known = count_known(names, *is_known);
    if (known == names.size()) break;
    for (std::string next = word; std::ranges::find(kPrefixes, next) != std::end(kPrefixes);
         next = common_first_word(shorter)) {
      for (std::string& name : shorter) name.erase(0, next.size() + 1);
      words.push_back(next);
      if (count_known(shorter, *is_known) > known) break;
    }
    if (count_known(shorter, *is_known) <= known) break;
    removed[fmt::format("{}", fmt::join(words, "."))] = names.size();
    names = std::move(shorter);
  }
  std::vector<std::string> notes;
  if (removed.empty() || std::unordered_set<std::string>(names.begin(), names.end()).size() != names.size())
    return notes;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].rename(std::move(names[i]));
  for (const auto& [word, count] : removed)
    notes.push_back(fmt::format(
        "{} of {} names of tensors were read without '{}.', which {}", count, tensors.size(), word,
        word == kModel ? fmt::format("architecture '{}' does not have", architecture.file) : "a trainer added"));
  return notes;
}

}  // namespace ggufmill::huggingface
