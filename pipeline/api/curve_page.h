#pragma once
// Plots the losses of the best choices for all sizes.

#include <string>
#include <utility>
#include <vector>

#include "stages/quantize/target.h"

namespace ggufmill {

// Returns a self-contained HTML page. For each named output it shows the curve, with the built-in recipes, the job's
// target and the curve of the other encoders on the same axes, and a table of the points. A size is marked as a bargain
// if the step leading to it reduced the logarithm of the loss at least 1.5 times as much per byte as the next step
// does.
std::string curve_html(const std::vector<std::pair<std::string, Curve>>& curves);

// Returns, for each point of `curve`, true if it is a best choice that is a bargain. Always false for recipes and for
// the first and last best choice.
std::vector<bool> bargains(const std::vector<CurvePoint>& curve);

}  // namespace ggufmill
