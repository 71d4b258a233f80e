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
  std::string text;                // for `plan`: "tensors[0]: blk\.\d+\.ffn_down"
  Position position;               // in the pipeline file
  bool optional = false;           // it is no error that no tensor matches
  bool used = false;               // some tensor matched
};

struct Decision {
  const TypeInfo* type = nullptr;  // never null
  std::string reason;
  bool misfit = false;  // rows are no whole blocks of the type that was decided, and the recipe has no fallback for it
};

// Takes the tensors of one model one after the other. Not thread-safe.
class Decider {
 public:
  // `pure`: the recipe's rules are not asked, only its type, keep list and fallbacks.
  Decider(const Recipe& recipe, std::vector<TensorRule>& rules, bool pure, const ModelFacts& model)
      : recipe_(recipe), rules_(rules), pure_(pure), model_(model), places_(model) {}

  Result<Decision> decide(const Tensor& tensor);

 private:
  Result<const Rule*> first(const std::vector<Rule>& rules, const TensorFacts& facts, const TypeInfo* type) const;
  Result<TensorRule*> user_rule(const Tensor& tensor) const;
  Result<Decision> by_recipe(const Tensor& tensor);  // type null: no rule decides, and the recipe has no type
  Decision fit(Decision decision, const Tensor& tensor) const;

  const Recipe& recipe_;
  std::vector<TensorRule>& rules_;
  const bool pure_;
  const ModelFacts& model_;
  PlaceCounter places_;
};

}  // namespace ggufmill
