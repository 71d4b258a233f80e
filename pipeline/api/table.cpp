#include "pipeline/api/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <limits>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/terminal.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

struct Range {
  char32_t first, last;
};
// Characters two columns wide: East_Asian_Width W and F of Unicode 15, in blocks, and emoji.
constexpr Range kWide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                           {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

// The first character of a text, as displayed.
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

constexpr std::size_t kGap = 2;  // spaces between columns

// Returns the beginning of `text` that fits into `width` columns, at least one character. Breaks after the last comma,
// slash or hyphen, or before the last space, unless that is in the first third of the width.
std::string_view beginning(std::string_view text, std::size_t width) {
  std::size_t bytes = 0, columns = 0, good = 0;
  while (bytes < text.size()) {
    const Character next = first_character(text.substr(bytes));
    if (columns + next.width > width && bytes > 0) break;
    columns += next.width;
    bytes += next.bytes.size();
    const bool ends_word =
        next.bytes == "," || next.bytes == "/" || next.bytes == "-" || text.substr(bytes).starts_with(' ');
    if (ends_word && columns * 3 >= width) good = bytes;
  }
  return text.substr(0, bytes < text.size() && good > 0 ? good : bytes);
}

std::string render_row(const std::vector<Column>& columns, const std::vector<std::size_t>& widths, const Row& row) {
  std::vector<std::string> shortened = row;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (columns[c].fit == Fit::kShorten) shortened[c] = fit_name(row[c], widths[c]);
  std::vector<std::string_view> rest(shortened.begin(), shortened.end());
  std::string lines;
  do {
    std::string line;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      const std::string_view cell = beginning(rest[c], widths[c]);
      const std::string padding(widths[c] - std::min(widths[c], display_width(cell)), ' ');
      line += columns[c].align == Align::kLeft ? std::string(cell) + padding : padding + std::string(cell);
      rest[c].remove_prefix(cell.size());
      rest[c].remove_prefix(std::min(rest[c].find_first_not_of(' '), rest[c].size()));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + "\n";
  } while (std::ranges::any_of(rest, [](std::string_view cell) { return !cell.empty(); }));
  return lines;
}

// Narrows the widest columns of names and text, one column at a time, until a line has `most` columns.
void narrow(const std::vector<Column>& columns, std::vector<std::size_t>& widths, std::size_t most) {
  constexpr std::size_t kNarrowest = 12;
  std::size_t all = kGap * (columns.size() - 1);
  for (std::size_t width : widths) all += width;
  while (all > most) {
    std::size_t* widest = nullptr;
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c].align == Align::kLeft && columns[c].fit != Fit::kWhole && widths[c] > kNarrowest &&
          (!widest || widths[c] > *widest))
        widest = &widths[c];
    if (!widest) return;
    --*widest;
    --all;
  }
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
  constexpr std::string_view kEllipsis = "...";
  const std::string text = printable(name);
  if (display_width(text) <= width) return text;
  if (width <= kEllipsis.size()) return std::string(kEllipsis.substr(0, width));
  const std::size_t room = width - kEllipsis.size();
  std::string_view rest = text;
  std::string begin;
  for (std::size_t left = room / 2; !rest.empty() && first_character(rest).width <= left;) {
    const Character next = first_character(rest);
    begin += next.bytes;
    left -= next.width;
    rest.remove_prefix(next.bytes.size());
  }
  while (display_width(rest) > room - display_width(begin)) rest.remove_prefix(first_character(rest).bytes.size());
  return begin + std::string(kEllipsis) + std::string(rest);
}

std::size_t output_columns() {
  const std::size_t columns = is_terminal(StandardStream::kOut) ? terminal_size(StandardStream::kOut).columns : 0;
  return columns > 0 ? columns : std::numeric_limits<std::size_t>::max();
}

std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows, std::size_t most_columns) {
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
  narrow(columns, widths, most_columns);
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

std::string table_json(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  boost::json::array array;
  for (const Row& row : rows) {
    boost::json::object object;
    for (std::size_t i = 0; i < row.size(); ++i) object[columns[i].title] = row[i];
    array.push_back(std::move(object));
  }
  return to_json_text(array);
}

}  // namespace ggufmill
