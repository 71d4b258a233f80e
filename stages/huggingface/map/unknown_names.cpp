// Finds the causes of names that no rule of a map matches. Source of the words of adapters: peft/tuners and
// peft/utils/other.py of PEFT (Apache-2.0).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_set>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/map/check_names.h"
#include "stages/huggingface/map/trainer_names.h"

namespace ggufmill::huggingface {
namespace {

// The one tensor that holds all weights of a module, of which each process saves a part: FSDP, fairscale.
constexpr std::string_view kFlat[] = {"_flat_param", "flat_param"};

// Kinds of tensors that PEFT adds to a model.
enum class Added {
  kAdapter,   // numbers by which an adapter changes a weight
  kReplaced,  // weights or rows that replace the model's
  kBelow,     // the model's own weights, below one of these two
  kPrompt,    // a trained prompt
};
struct AdapterPart {
  std::string_view word;  // one that ends in '_' is the beginning of several
  Added added;
  std::string_view is;  // for messages, except for kBelow
};

constexpr AdapterPart kAdapterParts[] = {
    {"lora_", Added::kAdapter, "a LoRA adapter"},
    {"ia3_", Added::kAdapter, "an IA3 adapter"},
    {"oft_", Added::kAdapter, "an OFT adapter"},
    {"boft_", Added::kAdapter, "a BOFT adapter"},
    {"lokr_", Added::kAdapter, "a LoKr adapter"},
    {"hada_", Added::kAdapter, "a LoHa adapter"},
    {"hra_u", Added::kAdapter, "an HRA adapter"},
    {"vera_", Added::kAdapter, "a VeRA adapter"},
    {"pvera_", Added::kAdapter, "a PVeRA adapter"},
    {"vblora_", Added::kAdapter, "a VB-LoRA adapter"},
    {"randlora_", Added::kAdapter, "a RandLoRA adapter"},
    {"gralora_", Added::kAdapter, "a GraLoRA adapter"},
    {"tinylora_", Added::kAdapter, "a TinyLoRA adapter"},
    {"unilora_", Added::kAdapter, "a UniLoRA adapter"},
    {"delora_", Added::kAdapter, "a DeLoRA adapter"},
    {"hira_", Added::kAdapter, "a HiRA adapter"},
    {"poly_lora_A", Added::kAdapter, "a Poly adapter"},
    {"poly_lora_B", Added::kAdapter, "a Poly adapter"},
    {"poly_router", Added::kAdapter, "a Poly adapter"},
    {"fourierft_", Added::kAdapter, "a FourierFT adapter"},
    {"waveft_", Added::kAdapter, "a WaveFT adapter"},
    {"shira_weight", Added::kAdapter, "a SHiRA adapter"},
    {"c3a_kernel", Added::kAdapter, "a C3A adapter"},
    {"road_theta", Added::kAdapter, "a RoAd adapter"},
    {"road_alpha", Added::kAdapter, "a RoAd adapter"},
    {"miss_block", Added::kAdapter, "a MiSS adapter"},
    {"bone_block", Added::kAdapter, "a Bone adapter"},
    {"psoft_", Added::kAdapter, "a PSOFT adapter"},
    {"osf_svd_params", Added::kAdapter, "an OSF adapter"},
    {"ln_tuning_layers", Added::kReplaced, "norms that PEFT trained (ln_tuning)"},
    {"modules_to_save", Added::kReplaced, "copies of modules that PEFT trained (modules_to_save)"},
    {"trainable_tokens_", Added::kReplaced, "rows of an embedding that PEFT trained (trainable_tokens)"},
    {"base_layer", Added::kBelow, ""},
    {"original_module", Added::kBelow, ""},
    {"token_adapter", Added::kBelow, ""},
    {"prompt_encoder", Added::kPrompt, "a prompt that PEFT trained (prompt_encoder)"},
    {"adaption_prompt", Added::kPrompt, "prompts that PEFT trained (adaption_prompt)"},
    {"adaption_gate", Added::kPrompt, "prompts that PEFT trained (adaption_prompt)"},
};

// Returns what a word of a name stands for; null for words that PEFT does not use.
const AdapterPart* adapter_part(std::string_view word) {
  for (const AdapterPart& part : kAdapterParts)
    if (part.word.ends_with('_') ? word.starts_with(part.word) : word == part.word) return &part;
  return nullptr;
}

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns what PEFT added under a name: an adapter rather than the weights below it. Null if it added nothing.
const AdapterPart* part_of_name(std::string_view name) {
  const AdapterPart* found = nullptr;
  for (const std::string_view word : words_of(name))
    if (const AdapterPart* const part = adapter_part(word); part && (!found || found->added == Added::kBelow))
      found = part;
  return found;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\.^$|()[]{}*+?").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// Returns how to change the map: the text `own` for a file of the user's. A built-in map is copied first; `copy` is the
// step for the copy.
std::string help_to_change(const Architecture& architecture, const std::string& where, const std::string& own,
                           const std::string& copy) {
  if (names_file(architecture.file)) return own;
  return fmt::format("run `ggufmill architectures new {} --like {} -o mine.yaml`, {}, and use the file with {}", where,
                     architecture.file, copy, option_reference("architectures", "mine.yaml"));
}

// Tensors with names that no rule matches, as far as no cause has been found.
class UnknownNames {
 public:
  UnknownNames(const Architecture& architecture, std::string where, const std::vector<NamedTensor>& tensors,
               const std::vector<const NamedTensor*>& unknown, const NameTest& is_known)
      : architecture_(architecture), where_(std::move(where)), all_(tensors.size()), rest_(unknown), known_(is_known) {
    for (const NamedTensor& tensor : tensors) names_.insert(tensor.name);
    std::unordered_set<std::string_view> without_rule;
    for (const NamedTensor* const tensor : unknown) without_rule.insert(tensor->name);
    for (const std::string& name : names_)
      if (!without_rule.contains(name)) known_names_.push_back(&name);
  }

  std::vector<Error> errors() {
    for (const auto& known : {adapter(), flat()})
      if (known) return {*known};
    if (rest_.size() < 2) return {};
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
  static constexpr std::size_t kMaxWords = 4;  // before names

  std::string examples(const std::vector<const NamedTensor*>& tensors) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < tensors.size() && i < 3; ++i) names.push_back(quoted_name(tensors[i]->name_in_file()));
    return fmt::format("{}{}", fmt::join(names, ", "), tensors.size() > 3 ? ", ..." : "");
  }

  std::string rule_help(const std::string& rule) const {
    return help_to_change(architecture_, where_,
                          fmt::format("add a rule to {}: `names: [{{{}}}]`", architecture_.file, rule),
                          fmt::format("add `names: [{{{}}}]` to it", rule));
  }

  // An adapter that was not merged: the tensors without it are those before the training.
  std::optional<Error> adapter() const {
    std::vector<const NamedTensor*> parts;
    std::vector<std::string_view> kinds;
    bool has_prompt = false, is_one = false;
    for (const NamedTensor* const tensor : rest_) {
      const AdapterPart* const part = part_of_name(tensor->name);
      if (!part) continue;
      parts.push_back(tensor);
      if (part->added == Added::kBelow || std::ranges::find(kinds, part->is) != kinds.end()) continue;
      has_prompt = has_prompt || part->added == Added::kPrompt;
      is_one = kinds.empty() && (part->is.starts_with("a ") || part->is.starts_with("an "));
      kinds.push_back(part->is);
    }
    if (parts.empty()) return {};
    const std::string count = fmt::format("{} of {} tensors", parts.size(), all_);
    constexpr const char* kMerge =
        "merge the adapter (`model.merge_and_unload()` of PEFT), save the model, and convert that";
    if (kinds.empty())
      return input_error(where_,
                         fmt::format("contains weights that PEFT trained an adapter for, but not the adapter: {}, such "
                                     "as {}, are the weights before the training",
                                     count, examples(parts)),
                         fmt::format("load the model with the adapter, {}", kMerge));
    return input_error(where_,
                       fmt::format("contains {} that {} not merged into the weights: {}, such as {}",
                                   fmt::join(kinds, " and "), is_one ? "was" : "were", count, examples(parts)),
                       has_prompt ? "convert the base model, without the prompt, which cannot be merged into weights; "
                                    "llama.cpp has no such prompts"
                                  : kMerge);
  }

  std::optional<Error> flat() const {
    std::vector<const NamedTensor*> parts;
    for (const NamedTensor* const tensor : rest_)
      if (std::ranges::any_of(words_of(tensor->name), [](std::string_view word) {
            return std::ranges::any_of(kFlat, [&](std::string_view flat) {
              return word == flat || (word.starts_with(flat) && word.substr(flat.size()).starts_with('_'));
            });
          }))
        parts.push_back(tensor);
    if (parts.empty()) return {};
    return input_error(where_,
                       fmt::format("is a shard of FSDP, not a model: {} of {} tensors, such as {}, {} the weights of "
                                   "modules in one row, or a part of it",
                                   parts.size(), all_, examples(parts), parts.size() == 1 ? "has" : "have"),
                       "gather the weights, and convert the result: save the model with "
                       "`StateDictType.FULL_STATE_DICT` of torch.distributed.fsdp");
  }

  // A word before names, or inside of them, without which the map would know the tensors.
  struct Word {
    std::string prefix, inner;  // one of them is empty
    std::vector<const NamedTensor*> tensors;
  };

  // Takes the tensors that the map would know without the word that explains most of them, or most of a sample.
  std::optional<Word> next_word() {
    constexpr std::size_t kSample = 512;
    std::vector<const NamedTensor*> sample;
    const std::size_t step = std::max<std::size_t>(1, rest_.size() / kSample);
    for (std::size_t i = 0; i < rest_.size(); i += step) sample.push_back(rest_[i]);
    Word best;
    std::ptrdiff_t most = 0;
    for (const auto& [before, inside] : candidates()) {
      const auto explains = [&, &prefix = before, &inner = inside](const NamedTensor* tensor) {
        return is_known_without(*tensor, prefix, inner);
      };
      const std::ptrdiff_t count = std::ranges::count_if(sample, explains);
      if (count <= most || is_in_known(before, inside)) continue;
      most = count;
      best = {before, inside, {}};
    }
    if (most == 0) return {};
    for (const NamedTensor* const tensor : rest_)
      if (is_known_without(*tensor, best.prefix, best.inner)) best.tensors.push_back(tensor);
    const std::unordered_set<const NamedTensor*> found(best.tensors.begin(), best.tensors.end());
    std::erase_if(rest_, [&](const NamedTensor* tensor) { return found.contains(tensor); });
    return best;
  }

  bool is_known_without(const NamedTensor& tensor, const std::string& prefix, const std::string& inner) const {
    const std::string shorter = shortened(tensor.name, prefix, inner);
    return !shorter.empty() && known_(shorter);
  }

  // Returns true if a rule for the word would change names that the map knows.
  bool is_in_known(const std::string& prefix, const std::string& inner) const {
    const std::string inside = "." + inner + ".";
    return std::ranges::any_of(known_names_, [&](const std::string* name) {
      return prefix.empty() ? name->find(inside) != name->npos : name->starts_with(prefix);
    });
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
    std::vector<std::string> also;  // names that also exist without the word
    for (const NamedTensor* const tensor : found)
      if (std::string name = shortened(tensor->name, prefix, inner); names_.contains(name))
        also.push_back(std::move(name));
    const std::string pattern =
        prefix.empty() ? fmt::format("\\.{}\\.", escaped(inner)) : fmt::format("^{}", escaped(prefix));
    const std::string names =
        fmt::format("{} of {} names {} {}", found.size(), all_, prefix.empty() ? "contain" : "begin with",
                    quoted_name(prefix.empty() ? inner : prefix));
    if (2 * also.size() >= found.size())
      return as_read(found,
                     input_error(where_,
                                 fmt::format("contains a second model: {}, such as {}, and the rest of them is there "
                                             "without it, too",
                                             names, examples(found)),
                                 "to leave out the second one, " + rule_help(fmt::format("drop: '{}'", pattern))));
    const std::string what = fmt::format("{}, which architecture '{}' does not expect, such as {}", names,
                                         architecture_.file, examples(found));
    const std::string removal = fmt::format("match: '{}', with: '{}'", pattern, prefix.empty() ? "." : "");
    if (also.empty()) return as_read(found, input_error(where_, what, "to remove it, " + rule_help(removal)));
    return as_read(found, input_error(where_,
                                      fmt::format("{}; {} of them would then have the {} of others", what, also.size(),
                                                  also.size() == 1 ? "name" : "names"),
                                      help_for_shared(also, removal)));
  }

  // Returns the help for when some names, but not most, exist both with and without a word.
  std::string help_for_shared(const std::vector<std::string>& names, const std::string& removal) const {
    constexpr std::size_t kMax = 4;  // names in a rule
    if (names.size() > kMax) return "save the model to convert alone, without the other tensors, and convert that";
    std::vector<std::string> drops;
    for (const std::string& name : names) drops.push_back(fmt::format("drop: '^{}$'", escaped(name)));
    return fmt::format("to remove it, and {} without it, {}", names.size() == 1 ? quoted_name(names[0]) : "the others",
                       rule_help(fmt::format("{}}}, {{{}", fmt::join(drops, "}, {"), removal)));
  }

  // Says how the first name is read, where that is not how it stands in the file.
  static Error as_read(const std::vector<const NamedTensor*>& found, Error error) {
    if (found[0]->name != found[0]->name_in_file())
      error.detail = fmt::format("the first of them was read as {}", quoted_name(found[0]->name));
    return error;
  }

  // Returns the words that could be removed: before names, and inside of them. Those of a few names suffice, since a
  // word counts for what it explains.
  std::set<std::pair<std::string, std::string>> candidates() const {
    std::set<std::pair<std::string, std::string>> result;
    for (std::size_t i = 0; i < rest_.size(); i += std::max<std::size_t>(1, rest_.size() / 8)) {
      const auto words = words_of(rest_[i]->name);
      std::string before;
      for (std::size_t w = 0; w + 1 < words.size(); ++w) {
        if (w < kMaxWords) result.insert({before += std::string(words[w]) + ".", ""});
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
  std::vector<const std::string*> known_names_;  // of those, the ones that a rule matches
};

}  // namespace

std::vector<Error> unknown_name_errors(const Architecture& architecture, const std::string& where,
                                       const std::vector<NamedTensor>& tensors,
                                       const std::vector<const NamedTensor*>& unknown, const NameTest& is_known) {
  return UnknownNames(architecture, where, tensors, unknown, is_known).errors();
}

std::string help_for_unknown(const Architecture& architecture, const std::string& where) {
  constexpr const char* kDrop = "drop it with `names: [{drop: ...}]`";
  return help_to_change(architecture, where,
                        fmt::format("add a rule for it to `tensors:` in {}, or {}", architecture.file, kDrop),
                        fmt::format("write a rule for it there or {}", kDrop));
}

}  // namespace ggufmill::huggingface
