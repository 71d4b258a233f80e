#pragma once
// Types that tensors were to get and cannot, as their rows are no whole blocks of them: told together, one error for
// each rule.

#include <vector>

#include "stages/quantize/decide.h"

namespace ggufmill {

class Misfits {
 public:
  // `decision` refuses its type to `tensor`.
  void add(const Decision& decision, const Tensor& tensor);
  // One error for each rule and type, in the order found, at the rule, or at `asked` where there is none: how many
  // tensors, the first few with the lengths of their rows, and the types that fit all of them. `misfit_is_given`: what
  // to do about them is said where there is no rule.
  std::vector<Error> errors(const Origin& asked, bool misfit_is_given, const Types& known) const;

 private:
  struct Group {
    const TensorRule* rule;  // the user's; null: the recipe, or one type for all
    const TypeInfo* type;
    bool named;
    std::vector<const Tensor*> tensors;  // at least one
  };
  std::vector<Group> groups_;
};

}  // namespace ggufmill
