#include "stages/huggingface/map/trainer_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_set>

#include "pipeline/core/text.h"
#include "stages/huggingface/map/tensor_map.h"

namespace ggufmill::huggingface {
namespace {

// Words that no model uses: torch.compile, FSDP, activation checkpointing, Lightning, fairscale.
constexpr std::string_view kWrappers[] = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module",
                                          "_forward_module", "_fpw_module"};
// Words that trainers put before all names: DataParallel, DeepSpeed, PEFT, TRL.
constexpr std::string_view kPrefixes[] = {"module", "model", "base_model", "pretrained_model"};
// Parts of names of an adapter that is not merged. Source: peft/tuners/lora (Apache-2.0).
constexpr std::string_view kAdapterParts[] = {"lora_A",           "lora_B",     "lora_embedding_A",
                                              "lora_embedding_B", "base_layer", "lora_magnitude_vector"};

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the name without the words for which `is_one` holds.
template <class IsOne>
std::string without(std::string_view name, const IsOne& is_one) {
  std::string result;
  for (const std::string_view word : words_of(name)) {
    if (is_one(word)) continue;
    if (!result.empty()) result += '.';
    result += word;
  }
  return result;
}

// Whether a map drops a name, or has a rule for it under any condition.
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

// Returns the first word of all names, if it is the same.
std::string common_first_word(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const std::string word = names[0].substr(0, names[0].find('.') + 1);
  const bool is_common = word.size() > 1 && std::ranges::all_of(names, [&](const std::string& name) {
                           return name.size() > word.size() && name.starts_with(word);
                         });
  return is_common ? word.substr(0, word.size() - 1) : std::string();
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\.^$|()[]{}*+?").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// Tensors with names that no rule matches, as far as no cause has been found.
class UnknownNames {
 public:
  UnknownNames(const Architecture& architecture, std::string where, const std::vector<NamedTensor>& tensors,
               const std::vector<const NamedTensor*>& unknown, const NameTest& is_known)
      : architecture_(architecture), where_(std::move(where)), all_(tensors.size()), rest_(unknown), known_(is_known) {
    for (const NamedTensor& tensor : tensors) names_.insert(tensor.name);
  }

  std::vector<Error> errors() {
    if (const auto one = adapter()) return {*one};
    std::vector<Word> words;
    while (auto one = next_word()) words.push_back(std::move(*one));
    std::vector<Error> errors;
    const std::size_t copies = copies_first(words);
    if (copies > 1) errors.push_back(several_models(std::span(words).first(copies)));
    for (const Word& word : std::span(words).subspan(copies > 1 ? copies : 0)) errors.push_back(about(word));
    if (!rest_.empty()) errors.push_back(others());
    return errors;
  }

 private:
  static constexpr std::size_t kMostWords = 4;  // before names

  std::string examples(const std::vector<const NamedTensor*>& tensors) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < tensors.size() && i < 3; ++i) names.push_back(quoted_name(tensors[i]->name));
    return fmt::format("{}{}", fmt::join(names, ", "), tensors.size() > 3 ? ", ..." : "");
  }

  std::string rule_help(const std::string& rule) const {
    return names_file(architecture_.file)
               ? fmt::format("add a rule to {}: `names: [{{{}}}]`", architecture_.file, rule)
               : fmt::format(
                     "run `ggufmill architectures new {} --like {} -o mine.yaml`, add `names: [{{{}}}]` to it, "
                     "and use it with --architectures mine.yaml",
                     where_, architecture_.file, rule);
  }

  std::optional<Error> adapter() const {
    std::vector<const NamedTensor*> parts;
    bool has_matrices = false;
    for (const NamedTensor* const tensor : rest_)
      for (const std::string_view word : words_of(tensor->name))
        if (std::ranges::find(kAdapterParts, word) != std::end(kAdapterParts)) {
          has_matrices = has_matrices || word.starts_with("lora_");
          parts.push_back(tensor);
          break;
        }
    if (!has_matrices) return {};
    return input_error(where_,
                       fmt::format("contains a LoRA adapter that was not merged into the weights: {} of {} tensors "
                                   "belong to it, such as {}",
                                   parts.size(), all_, examples(parts)),
                       "merge it (`model.merge_and_unload()` of PEFT), save the model, and convert that");
  }

  // A word before names, or inside of them, without which the map would know the tensors.
  struct Word {
    std::string prefix, inner;  // one of them is empty
    std::vector<const NamedTensor*> tensors;
  };

  // Takes the tensors that the map would know without the word that explains most of them.
  std::optional<Word> next_word() {
    Word best;
    for (const auto& [before, inside] : candidates()) {
      std::vector<const NamedTensor*> those;
      for (const NamedTensor* const tensor : rest_) {
        const std::string shorter = shortened(tensor->name, before, inside);
        if (!shorter.empty() && known_(shorter)) those.push_back(tensor);
      }
      if (those.size() > best.tensors.size()) best = {before, inside, std::move(those)};
    }
    if (best.tensors.empty()) return {};
    std::erase_if(rest_, [&](const NamedTensor* tensor) { return std::ranges::count(best.tensors, tensor) > 0; });
    return best;
  }

  // Moves words before names of the same model to the front, and returns their number.
  static std::size_t copies_first(std::vector<Word>& words) {
    std::set<std::string> names;  // of the first such word, without it
    std::size_t copies = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].prefix.empty()) continue;
      const auto is_there = [&](const NamedTensor* tensor) {
        return names.contains(shortened(tensor->name, words[i].prefix, {}));
      };
      if (copies == 0)
        for (const NamedTensor* const tensor : words[i].tensors)
          names.insert(shortened(tensor->name, words[i].prefix, {}));
      else if (std::ranges::none_of(words[i].tensors, is_there))
        continue;
      std::rotate(words.begin() + static_cast<std::ptrdiff_t>(copies), words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      ++copies;
    }
    return copies;
  }

  Error several_models(std::span<const Word> words) const {
    std::vector<std::string> prefixes, drops;
    for (const Word& word : words) prefixes.push_back(quoted_name(word.prefix));
    for (const Word& word : words.subspan(1)) drops.push_back(fmt::format("drop: '^{}'", escaped(word.prefix)));
    return input_error(where_,
                       fmt::format("contains {} models: names begin with {}, such as {}", words.size(),
                                   fmt::join(prefixes, " and with "), examples(words[0].tensors)),
                       fmt::format("to convert that of {}, {}", prefixes[0],
                                   rule_help(fmt::format("{}}}, {{match: '^{}', with: ''", fmt::join(drops, "}, {"),
                                                         escaped(words[0].prefix)))));
  }

  Error about(const Word& word) const {
    const auto& [prefix, inner, found] = word;
    const bool is_second =
        std::ranges::any_of(found, [&, &before = prefix, &inside = inner](const NamedTensor* tensor) {
          return names_.contains(shortened(tensor->name, before, inside));
        });
    if (is_second)
      return input_error(where_,
                         fmt::format("contains a second model: {} of {} names begin with {}, such as {}, and the rest "
                                     "of them is there without it, too",
                                     found.size(), all_, quoted_name(prefix), examples(found)),
                         "to leave out the second one, " + rule_help(fmt::format("drop: '^{}'", escaped(prefix))));
    return input_error(
        where_,
        fmt::format("{} of {} names {} {}, which architecture '{}' does not expect, such as {}", found.size(), all_,
                    prefix.empty() ? "contain" : "begin with", quoted_name(prefix.empty() ? inner : prefix),
                    architecture_.file, examples(found)),
        "to remove it, " + rule_help(prefix.empty() ? fmt::format("match: '\\.{}\\.', with: '.'", escaped(inner))
                                                    : fmt::format("match: '^{}', with: ''", escaped(prefix))));
  }

  // Returns the words that could be removed: before names, and inside of them. Those of a few names suffice, since a
  // word counts for what it explains.
  std::set<std::pair<std::string, std::string>> candidates() const {
    std::set<std::pair<std::string, std::string>> result;
    for (std::size_t i = 0; i < rest_.size(); i += std::max<std::size_t>(1, rest_.size() / 8)) {
      const auto words = words_of(rest_[i]->name);
      std::string before;
      for (std::size_t w = 0; w + 1 < words.size(); ++w) {
        if (w < kMostWords) result.insert({before += std::string(words[w]) + ".", ""});
        if (w > 0 && !is_number(words[w])) result.insert({"", std::string(words[w])});
      }
    }
    return result;
  }

  static std::string shortened(const std::string& name, const std::string& prefix, const std::string& inner) {
    if (!prefix.empty()) return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string();
    std::string result = without(name, [&](std::string_view word) { return word == inner; });
    return result == name ? std::string() : result;
  }

  Error others() const {
    std::vector<std::string> names;
    for (const NamedTensor* const tensor : rest_) names.push_back(tensor->name);
    const std::string word = names.size() > 1 ? common_first_word(names) : "";
    // A word that other names contain, or that most begin with, belongs to the model.
    const auto has_word = [&](const std::string& name) {
      return std::ranges::count(words_of(name), std::string_view(word)) != 0;
    };
    const bool is_other =
        !word.empty() && 2 * names.size() < all_ && std::ranges::count_if(names_, has_word) == std::ssize(names);
    return input_error(where_,
                       fmt::format("no rule in architecture '{}' matches {} of {} tensors: {}", architecture_.file,
                                   rest_.size(), all_, examples(rest_)),
                       is_other ? fmt::format("if the model does not need {}, {}", quoted_name(word),
                                              rule_help(fmt::format("drop: '^{}\\.'", escaped(word))))
                                : help_for_unknown(architecture_, where_));
  }

  const Architecture& architecture_;
  std::string where_;
  std::size_t all_;
  std::vector<const NamedTensor*> rest_;
  const NameTest& known_;
  std::set<std::string> names_;
};

}  // namespace

Result<std::vector<std::string>> remove_trainer_names(const Architecture& architecture, const Facts& facts,
                                                      std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> removed;  // names by word
  for (const NamedTensor& tensor : tensors)
    names.push_back(without(tensor.name, [&](std::string_view word) {
      const bool is_one = std::ranges::find(kWrappers, word) != std::end(kWrappers);
      if (is_one) ++removed[std::string(word)];
      return is_one;
    }));
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
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].name = std::move(names[i]);
  for (const auto& [word, count] : removed)
    notes.push_back(fmt::format("{} of {} names of tensors were read without '{}.', which a trainer added", count,
                                tensors.size(), word));
  return notes;
}

std::vector<Error> unknown_name_errors(const Architecture& architecture, const std::string& where,
                                       const std::vector<NamedTensor>& tensors,
                                       const std::vector<const NamedTensor*>& unknown, const NameTest& is_known) {
  return UnknownNames(architecture, where, tensors, unknown, is_known).errors();
}

std::string help_for_unknown(const Architecture& architecture, const std::string& where) {
  return names_file(architecture.file)
             ? fmt::format("add a rule for it to `tensors:` in {}, or drop it with `names: [{{drop: ...}}]`",
                           architecture.file)
             : fmt::format(
                   "run `ggufmill architectures new {} --like {} -o mine.yaml`, write a rule for it there or "
                   "drop it with `names: [{{drop: ...}}]`, and use the file with --architectures mine.yaml",
                   where, architecture.file);
}

}  // namespace ggufmill::huggingface
