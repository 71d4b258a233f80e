#pragma once
// Draws curves on two logarithmic axes.

#include <string>
#include <utility>
#include <vector>

namespace ggufmill::bench {

struct Curve {
  std::string name;  // in the legend; empty: not listed
  std::string color;
  enum Style { kLine, kDashed, kDots } style = kLine;
  std::vector<std::pair<double, double>> points;
};

struct Axis {
  std::string label;
  double least = 1, most = 10;
  std::vector<double> ticks;
  std::string unit;  // follows the number at each tick
};

struct Plot {
  std::string title;
  Axis x, y;
  std::vector<Curve> curves;
};

// Returns the plot as an SVG file. Parts of curves that lie outside of the axes are not drawn.
std::string to_svg(const Plot& plot);

}  // namespace ggufmill::bench
