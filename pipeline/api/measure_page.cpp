#include "pipeline/api/measure_page.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <map>

#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// With four digits: what a page needs to show and to sort.
double rounded(double figure) { return std::strtod(fmt::format("{:.3e}", figure).c_str(), nullptr); }

// {types: [NAME by rising size], tensors: [[name, shape, weights, [bits for a weight, relative error] or null of each
// type, and for a tensor of several matrices [relative error of each matrix] or null of each type]]}.
json::object page_data(const Measurement& measurement) {
  std::map<std::pair<double, std::string>, std::size_t> types;  // by bits for a weight
  for (const MeasuredTensor& tensor : measurement.tensors)
    for (const MeasuredType& type : tensor.types) {
      const double bits = 8.0 * static_cast<double>(type.bytes) / static_cast<double>(tensor.shape.elements());
      types.try_emplace({std::round(bits * 100) / 100, type.type}, 0);
    }
  json::array names, tensors;
  for (auto& [key, place] : types) {
    place = names.size();
    names.push_back(json::string(key.second));
  }
  for (const MeasuredTensor& tensor : measurement.tensors) {
    json::array figures(names.size()), matrices(names.size());
    const auto weights = static_cast<double>(tensor.shape.elements());
    for (const MeasuredType& type : tensor.types) {
      const double bits = 8.0 * static_cast<double>(type.bytes) / weights;
      const std::size_t place = types.at({std::round(bits * 100) / 100, type.type});
      figures[place] = json::array{bits, std::sqrt(tensor.relative_square(type))};
      json::array errors;
      for (std::size_t m = 0; m < type.matrices.plain.size(); ++m)
        errors.push_back(rounded(std::sqrt(tensor.relative_square(type, m))));
      matrices[place] = std::move(errors);
    }
    json::array row{is_utf8(tensor.name) ? tensor.name : quoted_name(tensor.name), describe(tensor.shape),
                    tensor.shape.elements(), std::move(figures)};
    if (!tensor.matrices.plain.empty()) row.push_back(std::move(matrices));
    tensors.push_back(std::move(row));
  }
  return {{"types", std::move(names)}, {"tensors", std::move(tensors)}};
}

constexpr std::string_view kPage = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>ggufmill measurement</title><style>
:root { color-scheme: light dark }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5em }
table { border-collapse: collapse }
th, td { padding: .2em .55em; border-bottom: 1px solid #8884; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
td { font-variant-numeric: tabular-nums }
th button { font: inherit; font-weight: 600; border: 0; padding: 0; background: none; color: inherit; cursor: pointer }
th[aria-sort] button { text-decoration: underline }
thead th { position: sticky; top: 0; background: Canvas }
svg { display: block }
polyline { fill: none; stroke: #37a; stroke-width: 1.5 }
td button { font: inherit; border: 0; padding: 0; background: none; color: inherit; cursor: pointer }
td button::before { content: "\25b8\00a0" }
td button[aria-expanded=true]::before { content: "\25be\00a0" }
td table { margin: 0 0 .8em 1.5em }
td table thead th { position: static }
</style></head><body>
<h1>What each type loses of each tensor</h1>
<p>The relative error: root of the squared error of all values over their squares, weighted where there is importance. The
curve has it over the bits for a weight, on a logarithmic scale that all rows share. A tensor of several matrices, such as
experts, opens to show each.
<label>Show tensors with <input id="find" type="search"></label> <output id="count"></output></p>
<table><thead><tr id="head"></tr></thead><tbody id="rows"></tbody></table>
<script id="data" type="application/json">@data@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const head = document.getElementById("head"), rows = document.getElementById("rows"), find = document.getElementById("find");
const columns = [["tensor", t => t[0]], ["shape", t => t[2]], ["weights", t => t[2]]]
  .concat(data.types.map((name, i) => [name, t => t[3][i] ? t[3][i][1] : Infinity]));
let order = list => list;
const all = data.tensors.flatMap(t => t[3]).filter(f => f && f[1] > 0);
const least = Math.log(Math.min(...all.map(f => f[1]), 1e-1)), most = Math.log(Math.max(...all.map(f => f[1]), 1));
const widest = Math.max(...all.map(f => f[0]), 1);
function curve(figures) {
  const points = figures.filter(f => f && f[1] > 0)
    .map(f => `${(90 * f[0] / widest + 2).toFixed(1)},${(20 - 18 * (Math.log(f[1]) - least) / (most - least || 1)).toFixed(1)}`);
  return `<svg width="95" height="22" aria-hidden="true"><polyline points="${points.join(" ")}"/></svg>`;
}
function cell(text) { const td = document.createElement("td"); td.textContent = text; return td; }
// A heading for each column that sorts by it: `sort` gets its number and whether the largest come first.
function headings(names, sort) {
  let by = -1, down = false;
  const made = names.map((name, i) => {
    const th = document.createElement("th"), button = document.createElement("button");
    th.scope = "col";
    button.textContent = name;
    button.onclick = () => {
      down = by === i && !down;
      by = i;
      made.forEach((th, i) => i === by ? th.setAttribute("aria-sort", down ? "descending" : "ascending")
                                       : th.removeAttribute("aria-sort"));
      sort(by, down);
    };
    th.append(button);
    return th;
  });
  return made;
}
function sorted(list, key, down) {
  const sign = down ? -1 : 1;
  return list.slice().sort((a, b) => { const x = key(a), y = key(b); return x < y ? -sign : x > y ? sign : 0; });
}
// The row below a tensor's with a table of its matrices.
function matrices(t) {
  const table = document.createElement("table"), top = document.createElement("tr"), body = document.createElement("tbody");
  const used = data.types.map((_, i) => i).filter(i => t[4][i]);
  const lines = t[4][used[0]].map((_, m) => {
    const tr = document.createElement("tr");
    tr.append(cell(m), ...used.map(i => cell(t[4][i][m].toPrecision(3))));
    return [m, tr];
  });
  const show = list => body.replaceChildren(...list.map(([, tr]) => tr));
  top.append(...headings(["matrix", ...used.map(i => data.types[i])],
    (by, down) => show(sorted(lines, ([m]) => by === 0 ? m : t[4][used[by - 1]][m], down))));
  const tr = document.createElement("tr"), td = cell(""), head = document.createElement("thead");
  show(lines);
  head.append(top);
  table.append(head, body);
  td.colSpan = columns.length + 1;
  td.append(table);
  tr.append(td);
  return tr;
}
function row(t) {
  const tr = document.createElement("tr");
  tr.append(cell(t[0]), cell(t[1]), cell(t[2].toLocaleString("en")));
  if (t[4]) {
    const button = document.createElement("button");
    button.textContent = t[0];
    button.setAttribute("aria-expanded", false);
    button.onclick = () => {
      const open = !tr.below;
      if (open) tr.after(tr.below = matrices(t));
      else { tr.below.remove(); tr.below = null; }
      button.setAttribute("aria-expanded", open);
    };
    tr.firstChild.replaceChildren(button);
  }
  for (const f of t[3]) tr.append(cell(f ? f[1].toPrecision(3) : ""));
  const drawn = document.createElement("td");
  drawn.innerHTML = curve(t[3]);
  tr.append(drawn);
  return tr;
}
const made = data.tensors.map(t => [t, row(t)]);
function show() {
  const shown = order(made.filter(([t]) => t[0].includes(find.value)));
  rows.replaceChildren(...shown.flatMap(([, tr]) => tr.below ? [tr, tr.below] : [tr]));
  document.getElementById("count").textContent = `${shown.length} of ${made.length}`;
}
head.append(...headings(columns.map(([name]) => name), (by, down) => {
  order = list => sorted(list, ([t]) => columns[by][1](t), down);
  show();
}));
head.append(Object.assign(document.createElement("th"), {textContent: "curve"}));
find.oninput = show;
show();
</script></body></html>
)";

}  // namespace

std::string measurement_html(const Measurement& measurement) {
  constexpr std::string_view kMark = "@data@";
  const std::size_t at = kPage.find(kMark);
  return std::string(kPage.substr(0, at)) + script_text(json::serialize(page_data(measurement))) +
         std::string(kPage.substr(at + kMark.size()));
}

}  // namespace ggufmill
