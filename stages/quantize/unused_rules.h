#pragma once
// Reports rules that decide no tensor.

#include <vector>

#include "stages/quantize/decide.h"

namespace ggufmill {

// Checks the rules of an output after all of its tensors are decided. A rule that matches no tensor, or only tensors
// that earlier rules decide, is an error (exit code 2) at its place, or a warning of the model if `warns` is set. A
// rule whose tensors are all kept is a warning. Optional rules are not reported.
Status check_rules_used(const std::vector<TensorRule>& rules, bool warns, Model& model);

}  // namespace ggufmill
