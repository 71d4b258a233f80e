#pragma once
// Collects tensors that cannot have the type decided for them, because their rows are not a multiple of its block size.
// They are reported together, as one error for each rule.

#include <vector>

#include "stages/quantize/decide.h"

namespace ggufmill {

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

}  // namespace ggufmill
