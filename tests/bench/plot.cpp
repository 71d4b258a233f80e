#include "tests/bench/plot.h"

#include <fmt/format.h>

#include <cmath>

namespace ggufmill::bench {
namespace {

constexpr double kWidth = 860, kHeight = 560, kLeft = 70, kRight = 230, kTop = 50, kBottom = 60;

// Returns the position of a value between the ends of an axis: 0 to 1.
double position(const Axis& axis, double value) {
  return std::log(value / axis.least) / std::log(axis.most / axis.least);
}

double x_of(const Plot& plot, double value) { return kLeft + (kWidth - kLeft - kRight) * position(plot.x, value); }
double y_of(const Plot& plot, double value) {
  return kTop + (kHeight - kTop - kBottom) * (1 - position(plot.y, value));
}

std::string grid(const Plot& plot) {
  std::string svg;
  for (const double tick : plot.x.ticks)
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4:g}{5}</text>\n",
        x_of(plot, tick), kTop, kHeight - kBottom, kHeight - kBottom + 20, tick, plot.x.unit);
  for (const double tick : plot.y.ticks)
    svg += fmt::format(
        "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:g}{6}</text>\n",
        kLeft, y_of(plot, tick), kWidth - kRight, kLeft - 8, y_of(plot, tick) + 4, tick, plot.y.unit);
  return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (kLeft + kWidth - kRight) / 2,
                           kHeight - 16, plot.x.label);
}

std::string dashes(const Curve& curve) { return curve.style == Curve::kDashed ? " stroke-dasharray=\"5 4\"" : ""; }

std::string dot(double x, double y, const std::string& color) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", x, y, color);
}

std::string drawn(const Plot& plot, const Curve& curve) {
  std::string points, dots;
  for (const auto& [x, y] : curve.points) {
    points += fmt::format("{:.1f},{:.1f} ", x_of(plot, x), y_of(plot, y));
    dots += dot(x_of(plot, x), y_of(plot, y), curve.color);
  }
  if (curve.style == Curve::kDots) return dots;
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
                     curve.color, dashes(curve));
}

std::string legend(const Curve& curve, double y) {
  const double left = kWidth - kRight + 14;
  std::string sample = dot(left + 12, y, curve.color);
  if (curve.style != Curve::kDots)
    sample = fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"{3}\" stroke-width=\"2\"{4}/>",
                         left, y, left + 24, curve.color, dashes(curve));
  return sample + fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", left + 30, y + 4, curve.name);
}

}  // namespace

std::string to_svg(const Plot& plot) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"26\" font-size=\"16\">{3}</text>\n"
      "<clipPath id=\"inside\"><rect x=\"{2}\" y=\"{4}\" width=\"{5}\" height=\"{6}\"/></clipPath>\n",
      kWidth, kHeight, kLeft, plot.title, kTop, kWidth - kLeft - kRight, kHeight - kTop - kBottom);
  svg += grid(plot) + "<g clip-path=\"url(#inside)\">\n";
  for (const Curve& curve : plot.curves) svg += drawn(plot, curve);
  svg += "</g>\n";
  double y = kTop + 14;
  for (const Curve& curve : plot.curves) {
    if (curve.name.empty()) continue;
    svg += legend(curve, y);
    y += 22;
  }
  return svg + "</svg>\n";
}

}  // namespace ggufmill::bench
