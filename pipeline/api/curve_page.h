#pragma once
// The losses of the best choices of all sizes, as a picture for people.

#include <string>
#include <utility>
#include <vector>

#include "stages/quantize/target.h"

namespace ggufmill {

// One page that needs no other file: for each output, by its name, the curve with the built-in recipes and the job's
// target on the same axes, and the points as a table. A size is marked as a bargain where the step to it saved at least
// half as much again for each byte as the next step does.
std::string curve_html(const std::vector<std::pair<std::string, std::vector<CurvePoint>>>& curves);

// Which of the best choices are bargains, in the order of `curve`; false for recipes, and for the first and the last.
std::vector<bool> bargains(const std::vector<CurvePoint>& curve);

}  // namespace ggufmill
