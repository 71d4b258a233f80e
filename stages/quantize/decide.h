#pragma once
// Decides the type of every tensor from a recipe and the user's tensor rules. The steps run in the order of llama.cpp's
// quantizer (src/llama-quant.cpp, MIT): tensors that are never converted, the user's rules, the recipe, and the
// fallback for rows that are not a multiple of the block size.

#include <optional>
#include <string>
#include <vector>

#include "stages/quantize/recipe.h"

namespace ggufmill {

// A user's rule. It applies to tensors with a name any part of which matches.
struct TensorRule {
  Pattern match{};
  const TypeInfo* type = nullptr;    // null: the tensor keeps its type
  std::string text{};                // shown by `plan`: "tensors[0]: blk\.\d+\.ffn_down"
  Origin origin{};                   // position of `match`
  bool optional = false;             // not an error if no tensor matches
  bool fallback = false;             // use a fallback type if rows are not whole blocks
  bool misfit_is_given = false;      // the rule sets `fallback` explicitly
  bool used = false;                 // at least one tensor matched
  std::optional<Encoder> encoder{};  // none: that of the type or the stage
  Origin encoder_origin{};           // position of `encoder`
  bool decided = false;              // at least one tensor got the type
  std::string kept{};                // why the first tensor that matched was kept instead; empty: none was
};

struct Decision {
  const TypeInfo* type = nullptr;  // never null
  std::string reason;
  // The type decided first, if the tensor's rows are not a multiple of its block size; otherwise null. `type` is then
  // the fallback or, if none is allowed, the tensor's source type.
  const TypeInfo* wanted = nullptr;
  bool refused = false;              // `wanted` has no usable fallback
  const TensorRule* rule = nullptr;  // the user's rule that decided; null: none
  bool named = false;                // the user named the type directly, not in a recipe
  bool is_open = false;              // undecided: no rule matched and the recipe has no type
  std::optional<Encoder> encoder{};  // of the rule that decided
};

// Returns the error of a pattern that matches no tensor; `why` adds a possible reason.
Error no_match(const Pattern& pattern, const Origin& origin, std::string_view why = {});

// Returns why rows of a tensor are not interleaved as those of `type`, in words that follow a semicolon; empty if they
// can be.
std::string why_plain(const Recipe& recipe, const Tensor& tensor, const TypeInfo& type);

// Decides the types of one model's tensors, given in order. Not thread-safe.
class Decider {
 public:
  // `pure`: ignores the recipe's rules and uses only its type, keep list and fallbacks. `fallback`: applies the
  // recipe's fallbacks also to types that the user named.
  Decider(const Recipe& recipe, std::vector<TensorRule>& rules, bool pure, bool fallback, const ModelFacts& model)
      : recipe_(recipe), rules_(rules), pure_(pure), fallback_(fallback), model_(model), places_(model) {}

  Result<Decision> decide(const Tensor& tensor);

 private:
  Result<const Rule*> first(const std::vector<Rule>& rules, const TensorFacts& facts, const TypeInfo* type) const;
  Result<TensorRule*> user_rule(const Tensor& tensor) const;
  Result<Decision> by_recipe(const Tensor& tensor);  // null type: no rule matched and the recipe has no type
  Decision fit(Decision decision, const Tensor& tensor, bool fallback) const;
  Decision with_rows(Decision decision, const Tensor& tensor) const;

  const Recipe& recipe_;
  std::vector<TensorRule>& rules_;
  const bool pure_;
  const bool fallback_;
  const ModelFacts& model_;
  PlaceCounter places_;
};

// Collects tensors that cannot have the type decided for them, because their rows are not a multiple of its block size.
// They are reported together, as one error for each rule.
class Misfits {
 public:
  // Adds `tensor`, for which `decision` is refused.
  void add(const Decision& decision, const Tensor& tensor);
  // Returns one error for each rule and type, in the order found. Its position is that of the rule, or `asked` if there
  // is none. It reports the number of tensors, the first few with their row lengths, and the types that fit all of
  // them. `misfit_is_given`: the user set `misfit` for tensors without a rule, so that the help does not suggest it.
  std::vector<Error> errors(const Origin& asked, bool misfit_is_given, const Types& known) const;

 private:
  struct Group {
    const TensorRule* rule;  // the user's rule; null: the recipe, or one type for all
    const TypeInfo* type;
    bool named;
    std::vector<const Tensor*> tensors;  // at least one
  };
  std::vector<Group> groups_;
};

// Adds problems to the model: one for the tensors that have no importance but a type that the recipe refuses without
// it, and one for those with importance data of the wrong size. Warns of the others that should have importance.
void find_importance_problems(const Recipe& recipe, Model& model);
// Adds a problem if an encoder needs a covariance and none was given. `origin`: of the encoder or the stage, for
// messages.
void find_missing_covariance(const Origin& origin, Model& model);

}  // namespace ggufmill
