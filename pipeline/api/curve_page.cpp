#include "pipeline/api/curve_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

constexpr double kWidth = 900, kHeight = 420, kLeft = 60, kBottom = 40;  // of the picture, in its own units
constexpr double kBargain = 1.5;

// Bytes to the right, losses upwards on a logarithmic scale.
class Axes {
 public:
  explicit Axes(const std::vector<CurvePoint>& curve) {
    bool is_first = true;
    for (const CurvePoint& point : curve) {
      if (point.loss <= 0) continue;
      const auto bytes = static_cast<double>(point.bytes), height = std::log(point.loss);
      least_bytes_ = is_first ? bytes : std::min(least_bytes_, bytes);
      most_bytes_ = is_first ? bytes : std::max(most_bytes_, bytes);
      least_ = is_first ? height : std::min(least_, height);
      most_ = is_first ? height : std::max(most_, height);
      is_first = false;
    }
  }
  double x(double bytes) const { return kLeft + (kWidth - kLeft - 90) * share(bytes, least_bytes_, most_bytes_); }
  double y(double loss) const { return (kHeight - kBottom - 16) * (1 - share(std::log(loss), least_, most_)) + 8; }
  double bytes_at(double part) const { return least_bytes_ + part * (most_bytes_ - least_bytes_); }
  double loss_at(double part) const { return std::exp(least_ + part * (most_ - least_)); }

 private:
  static double share(double value, double least, double most) {
    return most > least ? (value - least) / (most - least) : 0.5;
  }
  double least_bytes_ = 0, most_bytes_ = 0, least_ = 0, most_ = 0;
};

std::string axis_lines(const Axes& axes) {
  std::string out = fmt::format("<path class=axis d=\"M{0} 4V{1}H{2}\"/>\n", kLeft, kHeight - kBottom, kWidth - 80);
  constexpr int kMarks = 5;
  for (int i = 0; i < kMarks; ++i) {
    const double part = i / (kMarks - 1.0);
    const double bytes = axes.bytes_at(part), loss = axes.loss_at(part);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=middle>{}</text>\n", axes.x(bytes),
                       kHeight - kBottom + 18, human_bytes(static_cast<std::uint64_t>(bytes)));
    out +=
        fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=end>{:.2g}</text>\n", kLeft - 6, axes.y(loss) + 4, loss);
  }
  return out;
}

// Places for labels beside their points, none over another: further up or down where one is taken.
class Labels {
 public:
  // Where the line of a label of so many letters at (x, y) goes.
  double place(double x, double y, std::size_t letters) {
    constexpr double kLine = 13, kLetter = 7.5;
    Box box{x, x + kLetter * static_cast<double>(letters), y};
    for (int step = 1; step < 12; ++step) {
      if (std::ranges::none_of(taken_, [&](const Box& other) {
            return box.from < other.to && other.from < box.to && std::abs(box.y - other.y) < kLine;
          }))
        break;
      box.y += (step % 2 ? -1 : 1) * step * kLine;  // above, below, further above ...
    }
    taken_.push_back(box);
    return box.y;
  }

 private:
  struct Box {
    double from, to, y;
  };
  std::vector<Box> taken_;
};

std::string picture(const std::string& name, const std::vector<CurvePoint>& curve) {
  const Axes axes(curve);
  const std::vector<bool> cheap = bargains(curve);
  std::string line, marks;
  Labels labels;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const CurvePoint& point = curve[i];
    if (point.loss <= 0) continue;
    const double x = axes.x(static_cast<double>(point.bytes)), y = axes.y(point.loss);
    const std::string title = fmt::format("<title>{}: {} loses {:.4g}{}</title>",
                                          point.recipe.empty() ? "best choice" : html_text(point.recipe),
                                          human_bytes(point.bytes), point.loss, cheap[i] ? ": a bargain" : "");
    if (point.recipe.empty()) {
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x, y);
      marks += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\">{}</circle>\n",
                           cheap[i] ? "bargain" : "best", x, y, cheap[i] ? 6 : 3, title);
    } else {
      marks += fmt::format(
          "<rect class=recipe x=\"{:.1f}\" y=\"{:.1f}\" width=7 height=7>{}</rect>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          x - 3.5, y - 3.5, title, x + 7, labels.place(x + 7, y + 4, point.recipe.size()), html_text(point.recipe));
    }
  }
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"What sizes of {} lose; a table follows\">\n{}"
      "<path class=line d=\"{}\"/>\n{}</svg>\n",
      kWidth, kHeight, html_text(name), axis_lines(axes), line, marks);
}

std::string table(std::vector<CurvePoint> curve) {
  std::ranges::stable_sort(curve, {}, &CurvePoint::bytes);
  const std::vector<bool> cheap = bargains(curve);
  std::string rows;
  for (std::size_t i = 0; i < curve.size(); ++i)
    rows += fmt::format("<tr><td class=n>{}<td class=n>{:.4g}<td>{}{}\n", human_bytes(curve[i].bytes), curve[i].loss,
                        curve[i].recipe.empty() ? "best choice" : html_text(curve[i].recipe),
                        cheap[i] ? ", a bargain" : "");
  return "<table><thead><tr><th scope=col class=n>tensors<th scope=col class=n>loses<th "
         "scope=col>types</thead><tbody>\n" +
         rows + "</tbody></table>\n";
}

}  // namespace

std::vector<bool> bargains(const std::vector<CurvePoint>& curve) {
  std::vector<bool> cheap(curve.size());
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < curve.size(); ++i)
    if (curve[i].recipe.empty()) best.push_back(i);
  const auto saves = [&](std::size_t from, std::size_t to) {
    const auto bytes = static_cast<double>(curve[to].bytes) - static_cast<double>(curve[from].bytes);
    const double loss = curve[from].loss > 0 && curve[to].loss > 0 ? std::log(curve[from].loss / curve[to].loss) : 0;
    return bytes > 0 ? loss / bytes : 0;
  };
  for (std::size_t k = 1; k + 1 < best.size(); ++k) {
    const double before = saves(best[k - 1], best[k]), after = saves(best[k], best[k + 1]);
    cheap[best[k]] = before > 0 && before >= kBargain * after;
  }
  return cheap;
}

std::string curve_html(const std::vector<std::pair<std::string, std::vector<CurvePoint>>>& curves) {
  std::string body;
  for (const auto& [name, curve] : curves)
    body += fmt::format("<h2>{}</h2>\n{}<details><summary>The points as a table</summary>\n{}</details>\n",
                        html_text(name), picture(name, curve), table(curve));
  return R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>ggufmill: what sizes lose</title><style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
svg { width: 100%; height: auto; font-size: 12px }
svg text { fill: currentColor }
.axis { fill: none; stroke: currentColor; opacity: .4 }
.line { fill: none; stroke: #2a78d6; stroke-width: 2 }
.best { fill: #2a78d6 }
.bargain { fill: #12946a; stroke: currentColor }
.recipe { fill: #d8484a }
table { border-collapse: collapse }
th, td { text-align: left; padding: .2em .8em; border-bottom: 1px solid #8884 }
.n { text-align: right; font-variant-numeric: tabular-nums }
</style></head><body>
<h1>What sizes lose</h1>
<p>The least loss of all choices of so many bytes (the line), and that of the built-in recipes (squares); further down is
better, on a logarithmic scale. Green: a bargain, the step to it saved much more for each byte than the next one does.</p>
)" + body +
         "</body></html>\n";
}

}  // namespace ggufmill
