#pragma once
// From a recipe and a user's tensor rules to the type of every tensor. The order of the steps is that of llama.cpp's
// quantizer (src/llama-quant.cpp, MIT): what is never converted, the user's rules, the recipe, the fallback for rows
// that are no whole blocks.

#include <string>
#include <vector>

#include "stages/quantize/recipe.h"

namespace ggufmill {

// A user's rule: tensors whose name has a part that matches.
struct TensorRule {
  Pattern match;
  const TypeInfo* type = nullptr;  // null: the tensor keeps the type it has
  std::string text{};              // for `plan`: "tensors[0]: blk\.\d+\.ffn_down"
  Origin origin{};                 // of `match`
  bool optional = false;           // it is no error that no tensor matches
  bool fallback = false;           // another type takes its place where rows are no whole blocks
  bool misfit_is_given = false;    // `fallback` is said of this rule
  bool used = false;               // some tensor matched
};

struct Decision {
  const TypeInfo* type = nullptr;  // never null
  std::string reason;
  // The type that was decided first, where rows are no whole blocks of it; else null. `type` is what takes its place,
  // or, where nothing may, what the tensor has.
  const TypeInfo* wanted = nullptr;
  bool refused = false;              // nothing takes the place of `wanted`
  const TensorRule* rule = nullptr;  // the user's, which decided
  bool named = false;                // the user named the type, and not in a recipe
  bool is_open = false;              // nothing decides: the recipe has no type
};

// Whether llama.cpp makes the type of activations, to multiply them with weights: no weights in a file have it.
bool is_of_activations(const TypeInfo& type);

// Takes the tensors of one model one after the other. Not thread-safe.
class Decider {
 public:
  // `pure`: the recipe's rules are not asked, only its type, keep list and fallbacks. `fallback`: the recipe's
  // fallbacks hold for types that the user named, too.
  Decider(const Recipe& recipe, std::vector<TensorRule>& rules, bool pure, bool fallback, const ModelFacts& model)
      : recipe_(recipe), rules_(rules), pure_(pure), fallback_(fallback), model_(model), places_(model) {}

  Result<Decision> decide(const Tensor& tensor);

 private:
  Result<const Rule*> first(const std::vector<Rule>& rules, const TensorFacts& facts, const TypeInfo* type) const;
  Result<TensorRule*> user_rule(const Tensor& tensor) const;
  Result<Decision> by_recipe(const Tensor& tensor);  // type null: no rule decides, and the recipe has no type
  Decision fit(Decision decision, const Tensor& tensor, bool fallback) const;

  const Recipe& recipe_;
  std::vector<TensorRule>& rules_;
  const bool pure_;
  const bool fallback_;
  const ModelFacts& model_;
  PlaceCounter places_;
};

}  // namespace ggufmill
