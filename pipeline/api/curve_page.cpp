#include "pipeline/api/curve_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"
#include "pipeline/report/pages.h"

namespace ggufmill {
namespace {

constexpr double kWidth = 900, kHeight = 460;  // size of the picture in SVG user units
constexpr double kLeft = 76, kRight = 800, kTop = 14, kBottom = kHeight - 56;
constexpr double kBargain = 1.5;

// An axis scale that starts and ends at round numbers, with ticks at round numbers in between.
struct Scale {
  std::vector<double> marks;  // ascending
  bool logarithmic = false;

  double share(double value) const {
    const double first = marks.front(), last = marks.back();
    if (last <= first) return 0.5;
    return logarithmic ? std::log(value / first) / std::log(last / first) : (value - first) / (last - first);
  }
};

// Returns the least number of the form 1, 2 or 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1, 2, 5})
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  return 10 * power;
}

// Returns about five to eight ticks at multiples of a unit of bytes.
Scale scale_of_bytes(double least, double most, double unit) {
  const double step = round_step(std::max(most - least, most * 0.01) / 6 / unit) * unit;
  Scale scale;
  const double first = std::floor(least / step), last = std::max(std::ceil(most / step), first + 1);
  for (double at = first; at <= last; ++at) scale.marks.push_back(at * step);
  return scale;
}

// Returns ticks at 1, 2 and 5 times powers of ten. If the range is wide, the inner ticks are powers of ten only.
Scale scale_of_losses(double least, double most) {
  const int first = static_cast<int>(std::floor(std::log10(least) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(most) - 1e-9));
  std::vector<std::pair<double, bool>> all;  // second: true for powers of ten
  for (int power = first; power <= last; ++power)
    for (const int digit : {1, 2, 5}) all.emplace_back(digit * std::pow(10, power), digit == 1);
  while (all.size() > 2 && all[all.size() - 2].first >= most * (1 - 1e-9)) all.pop_back();
  while (all.size() > 2 && all[1].first <= least * (1 + 1e-9)) all.erase(all.begin());
  Scale scale;
  scale.logarithmic = true;
  for (const auto& [mark, is_power] : all)
    if (is_power || last - first <= 3 || mark == all.front().first || mark == all.back().first)
      scale.marks.push_back(mark);
  return scale;
}

// The axes: bytes horizontally, losses vertically on a logarithmic scale.
class Axes {
 public:
  explicit Axes(const Curve& curve) {
    double least_bytes = 0, most_bytes = 0, least = 0, most = 0;
    std::vector<CurvePoint> points = curve.points;
    points.insert(points.end(), curve.other_points.begin(), curve.other_points.end());
    for (const CurvePoint& point : points) {
      if (point.loss <= 0) continue;
      const auto size = static_cast<double>(point.bytes);
      least_bytes = least_bytes == 0 ? size : std::min(least_bytes, size);
      most_bytes = std::max(most_bytes, size);
      least = least == 0 ? point.loss : std::min(least, point.loss);
      most = std::max(most, point.loss);
    }
    while (unit_ * 1024 <= most_bytes) unit_ *= 1024;
    bytes_ = scale_of_bytes(least_bytes, std::max(most_bytes, 1.0), unit_);
    losses_ = scale_of_losses(least > 0 ? least : 1, most > 0 ? most : 1);
  }
  double x(double bytes) const { return kLeft + (kRight - kLeft) * bytes_.share(bytes); }
  double y(double loss) const { return kBottom - (kBottom - kTop) * losses_.share(loss); }

  std::string drawn() const {
    std::string out;
    for (const double mark : bytes_.marks) {
      std::string text = human_bytes(static_cast<std::uint64_t>(unit_));  // for example "1.00 MiB" or "1 B"
      text = fmt::format("{:g}{}", mark / unit_, text.substr(text.find(' ')));
      out += fmt::format(
          "<path class=ruler d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" text-anchor=middle>{4}</text>\n",
          x(mark), kTop, kBottom, kBottom + 18, text);
    }
    for (const double mark : losses_.marks)
      out += fmt::format(
          "<path class=ruler d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=end>{:g}</text>\n", kLeft,
          y(mark), kRight, kLeft - 8, y(mark) + 4, mark);
    out += fmt::format("<path class=frame d=\"M{0} {1}V{2}H{3}\"/>\n", kLeft, kTop, kBottom, kRight);
    out += fmt::format("<text class=axis-name x=\"{}\" y=\"{}\" text-anchor=middle>bytes of all tensors</text>\n",
                       (kLeft + kRight) / 2, kHeight - 12);
    out += fmt::format(
        "<text class=axis-name transform=\"translate(16 {}) rotate(-90)\" text-anchor=middle>loss "
        "(logarithmic)</text>\n",
        (kTop + kBottom) / 2);
    return out;
  }

 private:
  double unit_ = 1;  // of the ticks: KiB, MiB ...
  Scale bytes_, losses_;
};

// Places labels next to their points, without covering other labels or points if there is room.
class Labels {
 public:
  void keep_free(double x, double y) { taken_.push_back({x - 4, x + 4, y - 4, y + 4}); }

  // Returns the label of the point, with a leader line if the label is not directly next to it.
  std::string placed(double x, double y, const std::string& text, const std::string& style) {
    constexpr double kLetter = 6.8, kUp = 10, kDown = 3;
    const double width = kLetter * static_cast<double>(text.size());
    Box box;
    bool left = false;
    double at = 0;
    const auto is_free = [&](double offset, bool to_left) {
      at = y + offset;
      left = to_left;
      const double from = left ? x - 9 - width : x + 9;
      box = {from, from + width, at - kUp, at + kDown};
      return at - kUp > kTop && at + kDown < kBottom && std::ranges::none_of(taken_, [&](const Box& other) {
               return box.from < other.to && other.from < box.to && box.top < other.bottom && other.top < box.bottom;
             });
    };
    const auto find = [&] {
      for (const double step : {4, -9, 17, -22, -35, 30, -48, -61, 43, -74, -87, -100})
        for (const bool to_left : {false, true})
          if (is_free(step, to_left)) return;
      is_free(4, false);
    };
    find();
    taken_.push_back(box);
    const double end = left ? x - 9 : x + 9;
    std::string made =
        fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", style.empty() ? "" : " class=" + style, end, at,
                    left ? " text-anchor=end" : "", html_text(text));
    if (std::abs(at - y - 4) > 14)
      made += fmt::format("<path class=leader d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", x, y, end, at - 4);
    return made;
  }

 private:
  struct Box {
    double from = 0, to = 0, top = 0, bottom = 0;
  };
  std::vector<Box> taken_;
};

std::string name_of(const CurvePoint& point) {
  if (point.is_target) return "this job's target";
  return point.recipe.empty() ? "best choice" : point.recipe;
}

std::string title_of(const CurvePoint& point, const std::string& encoder, bool cheap) {
  return fmt::format("<title>{}{}: {} loses {:.4g}{}</title>", html_text(name_of(point)), html_text(encoder),
                     human_bytes(point.bytes), point.loss, cheap ? ": a bargain" : "");
}

// Draws the curves of one output: that of its own encoders with labelled recipes and the target, and below it that of
// the others, if there is one.
class Picture {
 public:
  explicit Picture(const Curve& curve) : curve_(curve), axes_(curve) {}

  std::string drawn(const std::string& name) {
    keep_lines_free(curve_.points);
    keep_lines_free(curve_.other_points);
    std::string body = axes_.drawn();
    if (!curve_.other_points.empty()) body += draw_other();
    body += draw_own();
    return fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"Size and loss of {}; a table follows\">\n{}</svg>\n", kWidth,
        kHeight, html_text(name), body);
  }

 private:
  double x(const CurvePoint& point) const { return axes_.x(static_cast<double>(point.bytes)); }
  double y(const CurvePoint& point) const { return axes_.y(point.loss); }

  void keep_lines_free(const std::vector<CurvePoint>& curve) {
    const CurvePoint* before = nullptr;  // the previous point of the line
    for (const CurvePoint& point : curve) {
      if (point.loss <= 0) continue;
      labels_.keep_free(x(point), y(point));
      if (!point.recipe.empty() || point.is_target) continue;
      constexpr int kPieces = 6;  // number of pieces that each segment of the line is divided into
      for (int i = 1; before && i < kPieces; ++i) {
        const double part = static_cast<double>(i) / kPieces;
        labels_.keep_free(x(*before) + part * (x(point) - x(*before)), y(*before) + part * (y(point) - y(*before)));
      }
      before = &point;
    }
  }

  // Labels the line with the name of its encoder, in the middle of its lower half, where recipes are rare.
  std::string name_line(const std::vector<CurvePoint>& curve, const std::string& encoder, const char* style) {
    std::vector<const CurvePoint*> line;
    for (const CurvePoint& point : curve)
      if (point.loss > 0 && point.recipe.empty() && !point.is_target) line.push_back(&point);
    if (line.empty()) return {};
    const CurvePoint& point = *line[line.size() * 3 / 4];
    return labels_.placed(x(point), y(point), encoder.substr(0, encoder.find(' ')), style);
  }

  std::string draw_other() {
    const std::string encoder = ", " + curve_.other_encoder;
    std::string line, marks;
    for (const CurvePoint& point : curve_.other_points) {
      if (point.loss <= 0 || point.is_target) continue;
      const std::string title = title_of(point, encoder, false);
      if (point.recipe.empty()) {
        line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x(point), y(point));
        marks += fmt::format("<circle class=other cx=\"{:.1f}\" cy=\"{:.1f}\" r=2.5>{}</circle>\n", x(point), y(point),
                             title);
      } else {
        marks += fmt::format("<rect class=other-recipe x=\"{:.1f}\" y=\"{:.1f}\" width=6 height=6>{}</rect>\n",
                             x(point) - 3, y(point) - 3, title);
      }
    }
    return fmt::format("<path class=other-line d=\"{}\"/>\n{}{}", line, marks,
                       name_line(curve_.other_points, curve_.other_encoder, "other-name"));
  }

  std::string draw_own() {
    const std::vector<bool> cheap = bargains(curve_.points);
    const std::string encoder = curve_.other_points.empty() ? "" : ", " + curve_.encoder;
    std::string line, marks, target;
    if (!curve_.other_points.empty()) marks += name_line(curve_.points, curve_.encoder, "own-name");
    for (std::size_t i = 0; i < curve_.points.size(); ++i) {
      const CurvePoint& point = curve_.points[i];
      if (point.loss <= 0) continue;
      const std::string title = title_of(point, encoder, cheap[i]);
      if (point.is_target) {
        target += fmt::format(
            "<path class=target-line d=\"M{0:.1f} {1}V{2:.1f}\"/><circle class=target cx=\"{0:.1f}\" cy=\"{2:.1f}\" "
            "r=8>{3}</circle>\n",
            x(point), kBottom, y(point), title);
        target += labels_.placed(x(point), y(point), fmt::format("{}, {}", name_of(point), human_bytes(point.bytes)),
                                 "target-name");
      } else if (point.recipe.empty()) {
        line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x(point), y(point));
        marks += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\">{}</circle>\n",
                             cheap[i] ? "bargain" : "best", x(point), y(point), cheap[i] ? 6 : 3, title);
      } else {
        marks += fmt::format("<rect class=recipe x=\"{:.1f}\" y=\"{:.1f}\" width=7 height=7>{}</rect>\n",
                             x(point) - 3.5, y(point) - 3.5, title);
        marks += labels_.placed(x(point), y(point), point.recipe, "");
      }
    }
    return fmt::format("<path class=line d=\"{}\"/>\n{}{}", line, marks, target);
  }

  const Curve& curve_;
  const Axes axes_;
  Labels labels_;
};

struct TableRow {
  CurvePoint point;
  bool is_bargain = false;
  const std::string* encoder = nullptr;
};

std::string table(const Curve& curve) {
  std::vector<TableRow> rows;
  const std::vector<bool> cheap = bargains(curve.points);
  for (std::size_t i = 0; i < curve.points.size(); ++i) rows.push_back({curve.points[i], cheap[i], &curve.encoder});
  for (const CurvePoint& point : curve.other_points)
    if (!point.is_target) rows.push_back({point, false, &curve.other_encoder});
  std::ranges::stable_sort(rows, {}, [](const TableRow& row) { return row.point.bytes; });
  std::string text;
  for (const TableRow& row : rows)
    text += fmt::format("<tr><td class=number>{}<td class=number>{:.4g}<td>{}{}<td>{}\n", human_bytes(row.point.bytes),
                        row.point.loss, html_text(name_of(row.point)), row.is_bargain ? ", a bargain" : "",
                        html_text(*row.encoder));
  return "<table><thead><tr><th scope=col class=number>bytes of all tensors<th scope=col class=number>loss<th "
         "scope=col>types<th scope=col>encoder</thead><tbody>\n" +
         text + "</tbody></table>\n";
}

}  // namespace

std::vector<bool> bargains(const std::vector<CurvePoint>& curve) {
  std::vector<bool> cheap(curve.size());
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < curve.size(); ++i)
    if (curve[i].recipe.empty() && !curve[i].is_target) best.push_back(i);
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

std::string curve_html(const std::vector<std::pair<std::string, Curve>>& curves) {
  std::string body;
  for (const auto& [name, curve] : curves)
    body += fmt::format(
        "<section><h2>{}</h2>\n{}<details><summary>The points as a table</summary>\n{}</details></section>\n",
        html_text(name), Picture(curve).drawn(name), table(curve));
  return page_with(kCurvePage, body);
}

}  // namespace ggufmill
