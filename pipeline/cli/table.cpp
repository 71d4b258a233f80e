#include "pipeline/cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

struct Range {
  char32_t first, last;
};
// What takes two columns: East_Asian_Width W and F of Unicode 15, in blocks, and emoji.
constexpr Range kWide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                           {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

// What stands first in `text` and is shown as one.
struct Character {
  std::string_view bytes;
  std::size_t width;
};
Character first_character(std::string_view text) {
  const std::string_view bytes = text.substr(0, std::max<std::size_t>(1, utf8_sequence(text)));
  const char32_t code = code_point(bytes);
  const bool wide = std::any_of(std::begin(kWide), std::end(kWide),
                                [&](const Range& range) { return code >= range.first && code <= range.last; });
  return {bytes, wide ? 2u : 1u};
}

std::string render_row(const std::vector<Column>& columns, const std::vector<std::size_t>& widths, const Row& row) {
  std::string line;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) line += "  ";
    const std::string padding(widths[c] - display_width(row[c]), ' ');
    line += columns[c].align == Align::kLeft ? row[c] + padding : padding + row[c];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    width += next.width;
    text.remove_prefix(next.bytes.size());
  }
  return width;
}

std::string fit_name(std::string_view name, std::size_t width) {
  constexpr std::string_view kGap = "...";
  const std::string text = printable(name);
  if (display_width(text) <= width) return text;
  if (width <= kGap.size()) return std::string(kGap.substr(0, width));
  const std::size_t room = width - kGap.size();
  std::string_view rest = text;
  std::string begin;
  for (std::size_t left = room / 2; !rest.empty() && first_character(rest).width <= left;) {
    const Character next = first_character(rest);
    begin += next.bytes;
    left -= next.width;
    rest.remove_prefix(next.bytes.size());
  }
  while (display_width(rest) > room - display_width(begin)) rest.remove_prefix(first_character(rest).bytes.size());
  return begin + std::string(kGap) + std::string(rest);
}

std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  Row titles;
  std::vector<std::size_t> widths;
  for (const Column& column : columns) {
    titles.push_back(column.title);
    widths.push_back(display_width(column.title));
  }
  std::vector<Row> shown = rows;
  for (Row& row : shown)
    for (std::size_t c = 0; c < columns.size(); ++c) {
      row[c] = printable(row[c]);
      widths[c] = std::max(widths[c], display_width(row[c]));
    }
  std::string text = render_row(columns, widths, titles);
  for (const Row& row : shown) text += render_row(columns, widths, row);
  return text;
}

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

void print_table(const std::vector<Column>& columns, const std::vector<Row>& rows, bool as_json) {
  if (!as_json) {
    std::fputs(render_table(columns, rows).c_str(), stdout);
    return;
  }
  boost::json::array array;
  for (const Row& row : rows) {
    boost::json::object object;
    for (std::size_t i = 0; i < row.size(); ++i) object[columns[i].title] = row[i];
    array.push_back(std::move(object));
  }
  std::puts(json_text(array).c_str());
}

}  // namespace ggufmill
