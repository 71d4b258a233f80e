#pragma once
// Formats text for terminals: tables with columns as wide as their widest cell, names shortened to fit, and numbers.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/text.h"  // human_bytes

namespace ggufmill {

enum class Align { kLeft, kRight };

// Ways to narrow a cell of a left-aligned column if a row does not fit. Right-aligned columns, which contain numbers,
// are never narrowed.
enum class Fit {
  kWrap,     // text: continues on the next line
  kShorten,  // a name: cut in the middle
  kWhole,    // a shape or a type: never narrowed
};

struct Column {
  std::string title;
  Align align = Align::kLeft;
  Fit fit = Fit::kWrap;
};
inline Column name_column(std::string title) { return {std::move(title), Align::kLeft, Fit::kShorten}; }
inline Column whole_column(std::string title) { return {std::move(title), Align::kLeft, Fit::kWhole}; }

using Row = std::vector<std::string>;

// Returns the number of terminal columns that `text`, which must be printable(), occupies. East Asian characters and
// emoji take two.
std::size_t display_width(std::string_view text);
// Returns the name, made printable(), in at most `width` columns. Longer names are cut in the middle:
// "models/very-l...-IQ2_XXS.gguf".
std::string fit_name(std::string_view name, std::size_t width);

// Returns the width of the terminal that stdout is connected to; no limit if it is a pipe or a file.
std::size_t output_columns();

// Returns a title line and one line per row, with two spaces between columns and no trailing spaces. Cells are made
// printable(). If a line is wider than `most_columns`, the widest columns are narrowed first: names are cut in the
// middle, and text continues on the next line, broken at a space, or after a comma, slash or hyphen if that fits
// better. Numbers are never cut, and no column is narrowed below 12.
std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                         std::size_t most_columns = output_columns());

// Formats a number with commas, for example "1,234,567".
std::string with_commas(std::uint64_t number);

// Returns a JSON array with one object per row that maps column titles to cell texts.
std::string table_json(const std::vector<Column>& columns, const std::vector<Row>& rows);

}  // namespace ggufmill
