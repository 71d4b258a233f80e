#include "stages/rename/rename_stage.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "pipeline/core/name_total.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxNameLength = 65535;  // bytes of a name in a GGUF file that this program can read

// Returns the problem with `to` as a replacement for `match`, in one line; empty if it is valid. References to missing
// groups are rejected, because they would silently become empty text.
std::string fault_in_replacement(const Pattern& match, std::string_view to) {
  if (!is_utf8(to) || to.find('\0') != to.npos) return "a name must be UTF-8 without zero bytes";
  for (std::size_t i = 0; i + 1 < to.size(); ++i) {
    if (to[i] == '\\') {
      ++i;
    } else if (to[i] == '$' && to[i + 1] >= '1' && to[i + 1] <= '9') {
      const auto group = static_cast<std::size_t>(to[i + 1] - '0');
      if (group > match.groups())
        return fmt::format("'${}' is used, but {} has {}", group, quoted_name(match.text()),
                           counted(match.groups(), "group"));
    }
  }
  return {};
}

class RenameStage : public Stage {
 public:
  explicit RenameStage(RenameOptions options) : options_(std::move(options)) {}

  Result<Model> apply(Model model) const override {
    std::vector<std::string> before;
    before.reserve(model.tensors.size());
    for (const Tensor& tensor : model.tensors) before.push_back(tensor.name);
    for (const RenameRule& rule : options_.rules) {
      BOOST_OUTCOME_TRY(apply_rule(rule, model));
    }
    BOOST_OUTCOME_TRY(check_names(model, before));
    return model;
  }

 private:
  static Status apply_rule(const RenameRule& rule, Model& model) {
    bool used = false;
    NameTotal total;
    for (Tensor& tensor : model.tensors) {
      auto result = rule.match.replace(tensor.name, rule.to);
      if (!result) return error_at(rule.match_origin, result.error().what, result.error().help);
      if (std::optional<std::string>& renamed = result.value()) {
        tensor.name = std::move(*renamed);
        used = true;
      }
      if (!total.add(tensor.name))
        return error_at(
            rule.match_origin,
            fmt::format("the names of all tensors together would be longer than {}", human_bytes(NameTotal::kMax)),
            "shorten `to`, or repeat fewer groups in it");
    }
    if (used) return ok();
    return error_at(rule.match_origin, fmt::format("no tensor matches {}", quoted_name(rule.match.text())),
                    "`ggufmill inspect` lists the tensors; earlier rules may have renamed them");
  }

  Status check_names(const Model& model, const std::vector<std::string>& before) const {
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::string& name = model.tensors[i].name;
      const std::string fault = fault_in_name(name);
      if (!fault.empty())
        return error_at(options_.origin, fmt::format("the new name of {} {}", quoted_name(before[i]), fault));
      const auto [at, fresh] = places.emplace(name, i);
      if (!fresh)
        return error_at(options_.origin,
                        fmt::format("tensors {} and {} would both be named {}", quoted_name(before[at->second]),
                                    quoted_name(before[i]), quoted_name(name)));
    }
    return ok();
  }

  static std::string fault_in_name(const std::string& name) {
    if (name.empty()) return "is empty";
    if (name.size() > kMaxNameLength)
      return fmt::format("has {} bytes, more than the limit of {}", name.size(), kMaxNameLength);
    if (!is_utf8(name)) return fmt::format("is not UTF-8: {}", quoted_name(name));  // the rule split a character
    return {};
  }

  RenameOptions options_;
};

Form<RenameRule> rule_form() {
  return map_of<RenameRule>(
             {field("match", &RenameRule::match,
                    "Pattern to find anywhere in the tensor name (Perl syntax); the first match is replaced.")
                  .required()
                  .example("'^model\\.layers\\.(\\d+)'")
                  .at(&RenameRule::match_origin),
              field("to", &RenameRule::to, "The replacement: $1 to $9 are the groups, $& is the entire match.")
                  .required()
                  .example("'blk.$1'")
                  .at(&RenameRule::to_origin)})
      .doc("A rule; all rules are applied in order, and a rule without a match is an error.");
}

}  // namespace

Result<std::unique_ptr<Stage>> make_rename_stage(RenameOptions options) {
  Diagnostics errors;
  for (const RenameRule& rule : options.rules)
    if (const std::string fault = fault_in_replacement(rule.match, rule.to); !fault.empty())
      errors.add(error_at(rule.to_origin, fault, "a group is a part of `match` in ( ); write \\$ for a literal $"));
  if (!errors.empty()) return errors.together();
  return std::make_unique<RenameStage>(std::move(options));
}

StageSpec rename_stage() {
  return stage_spec("rename",
                    shorthand(&RenameOptions::rules, list_of(rule_form()).at_least(1))
                        .at(&RenameOptions::origin)
                        .doc("Renames tensors.")
                        .example("[{match: '^model\\.layers\\.(\\d+)', to: 'blk.$1'}]"),
                    make_rename_stage);
}

}  // namespace ggufmill
