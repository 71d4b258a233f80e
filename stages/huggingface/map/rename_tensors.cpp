// Renames a checkpoint's tensors to the names that the tensor rules see, and back.

#include <fmt/format.h>

#include <unordered_set>

#include "pipeline/core/name_total.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/tensor_map.h"

namespace ggufmill::huggingface {
namespace {

// The number in the first group of a match, and the name with the match replaced.
struct Replaced {
  std::string name;
  std::uint64_t number = 0;
};

Result<std::optional<Replaced>> replaced(const NameRule& rule, const std::string& name) {
  // Encloses the number in two bytes that no name contains.
  BOOST_OUTCOME_TRY(const auto marked, rule.match.replace(name, rule.match.groups() > 0 ? "\x01$1\x01" : "\x01\x01"));
  if (!marked) return std::optional<Replaced>();
  const std::size_t begin = marked->find('\x01'), end = marked->rfind('\x01');
  const std::string digits = marked->substr(begin + 1, end - begin - 1);
  Replaced result;
  for (const char digit : digits.substr(0, 9))
    if (digit >= '0' && digit <= '9') result.number = result.number * 10 + static_cast<std::uint64_t>(digit - '0');
  if (rule.with) {
    BOOST_OUTCOME_TRY(const auto other, rule.match.replace(name, *rule.with));
    result.name = *other;
  }
  return std::optional(std::move(result));
}

class Renamer {
 public:
  static Result<Renamer> make(const std::vector<NameRule>& rules, const Facts& facts) {
    Renamer renamer;
    for (const NameRule& rule : rules) {
      BOOST_OUTCOME_TRY(const bool holds, facts.holds(rule.when));
      if (!holds) continue;
      Active active{&rule, 0, {}};
      if (rule.number) {
        BOOST_OUTCOME_TRY(active.number, facts.count(*rule.number, "a number of layers"));
      }
      if (rule.list) {
        BOOST_OUTCOME_TRY(active.list, layers_in(*rule.list, facts));
      }
      renamer.active_.push_back(std::move(active));
    }
    return renamer;
  }

  // Returns nullopt if the tensor is dropped.
  Result<std::optional<std::string>> rename(std::string name) const {
    for (const Active& active : active_) {
      BOOST_OUTCOME_TRY(auto changed, replaced(*active.rule, name));
      if (!changed) continue;
      if (active.rule->with) {
        if (active.rule->minus && changed->number < active.number) continue;
        if (active.rule->list && changed->number >= active.list.size()) continue;
        name = std::move(changed->name);
        const std::uint64_t number = active.rule->list    ? active.list[changed->number]
                                     : active.rule->minus ? changed->number - active.number
                                                          : changed->number + active.number;
        const bool is_numbered = active.rule->number || active.rule->list;
        if (const std::size_t at = name.find("{layer}"); is_numbered && at != std::string::npos)
          name.replace(at, 7, std::to_string(number));
      } else if (!active.rule->number || (changed->number < active.number) == active.rule->below) {
        return std::optional<std::string>();
      }
    }
    return std::optional(std::move(name));
  }

 private:
  struct Active {
    const NameRule* rule;
    std::uint64_t number;
    std::vector<std::uint64_t> list;
  };

  static Result<std::vector<std::uint64_t>> layers_in(const ValueRule& rule, const Facts& facts) {
    BOOST_OUTCOME_TRY(const boost::json::value value, facts.evaluate(rule));
    std::vector<std::uint64_t> layers;
    if (value.is_null()) return layers;
    const boost::json::array* const list = value.if_array();
    bool is_good = list;
    for (std::size_t i = 0; is_good && i < list->size(); ++i) {
      const auto layer = whole_number((*list)[i]);
      is_good = layer && *layer >= 0;
      layers.push_back(static_cast<std::uint64_t>(layer.value_or(0)));
    }
    if (is_good) return layers;
    return input_error((facts.folder() / "config.json").string(),
                       fmt::format("{} is not a list of layers", shown(value)),
                       fmt::format("required by the map at {}", rule.place));
  }

  std::vector<Active> active_;
};

}  // namespace

Result<std::vector<NamedTensor>> rename_tensors(const Architecture& architecture, const Facts& facts,
                                                std::vector<NamedTensor> tensors) {
  BOOST_OUTCOME_TRY(const Renamer renamer, Renamer::make(architecture.names, facts));
  std::vector<NamedTensor> result;
  std::unordered_set<std::string> names;
  NameTotal total;
  for (NamedTensor& tensor : tensors) {
    BOOST_OUTCOME_TRY(auto name, renamer.rename(tensor.name));
    if (!name) continue;
    if (!total.add(*name))
      return input_error(
          facts.folder().string(),
          fmt::format("the names of all tensors together would be longer than {}", human_bytes(NameTotal::kMax)),
          "in `names:` of the architecture's map, shorten the new names, or repeat fewer groups in them");
    if (!names.insert(*name).second)
      return input_error(facts.folder().string(),
                         fmt::format("two tensors are named {}, one of them {} in the file", quoted_name(*name),
                                     quoted_name(tensor.name_in_file())),
                         "change `names:` in the architecture's map to drop one of them");
    tensor.rename(std::move(*name));
    result.push_back(std::move(tensor));
  }
  return result;
}

Result<ModuleRenamer> name_renamer(const Architecture& architecture, const Facts& facts) {
  BOOST_OUTCOME_TRY(Renamer made, Renamer::make(architecture.names, facts));
  return [renamer = std::move(made)](const std::string& name) { return renamer.rename(name); };
}

Result<ModuleRenamer> module_renamer(const Architecture& architecture, const Facts& facts) {
  BOOST_OUTCOME_TRY(ModuleRenamer rename, name_renamer(architecture, facts));
  return [rename = std::move(rename)](const std::string& module) -> Result<std::optional<std::string>> {
    constexpr std::string_view kEnding = ".weight";  // rules may depend on it
    BOOST_OUTCOME_TRY(auto name, rename(module + std::string(kEnding)));
    if (name && name->ends_with(kEnding)) name->resize(name->size() - kEnding.size());
    return name;
  };
}

Status restore_names(const Architecture& architecture, const Facts& facts, std::vector<Tensor>& tensors) {
  BOOST_OUTCOME_TRY(const Renamer forth, Renamer::make(architecture.names, facts));
  BOOST_OUTCOME_TRY(const Renamer back, Renamer::make(architecture.names_back, facts));
  for (Tensor& tensor : tensors) {
    BOOST_OUTCOME_TRY(auto name, back.rename(tensor.name));
    std::optional<std::string> again;
    if (name) {
      BOOST_OUTCOME_TRY(again, forth.rename(*name));
    }
    if (again != tensor.name)
      return usage_error(fmt::format("cannot determine the checkpoint's name of {}: {}", quoted_name(tensor.name),
                                     again  ? fmt::format("{} would become {}", quoted_name(*name), quoted_name(*again))
                                     : name ? fmt::format("{} would be dropped", quoted_name(*name))
                                            : "`names_back` drops it"),
                         fmt::format("`names_back:` in the map '{}' must undo `names:`", architecture.file));
    tensor.name = std::move(*name);
  }
  return ok();
}

}  // namespace ggufmill::huggingface
