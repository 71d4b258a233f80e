#pragma once
// Text for people at a terminal: tables whose columns are as wide as their widest cell, names that fit, figures.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/text.h"  // human_bytes

namespace ggufmill {

enum class Align { kLeft, kRight };

// How a cell of a column on the left side gets narrower where a row does not fit: those on the right side, figures,
// never do.
enum class Fit {
  kWrap,     // text: continues below
  kShorten,  // a name: loses its middle
  kWhole,    // a shape, a type
};

struct Column {
  std::string title;
  Align align = Align::kLeft;
  Fit fit = Fit::kWrap;
};
inline Column name_column(std::string title) { return {std::move(title), Align::kLeft, Fit::kShorten}; }
inline Column whole_column(std::string title) { return {std::move(title), Align::kLeft, Fit::kWhole}; }

using Row = std::vector<std::string>;

// Columns of a terminal that `text`, which is printable(), takes: East Asian characters and emoji take two.
std::size_t display_width(std::string_view text);
// The name, printable(), in at most `width` columns: "models/very-l...-IQ2_XXS.gguf" where it is longer.
std::string fit_name(std::string_view name, std::size_t width);

// Columns of the terminal that stdout is; no limit where it is a pipe or a file.
std::size_t output_columns();

// A title line and one line a row, two spaces between columns, no trailing spaces. Cells are made printable(). In fewer
// columns than that takes names are cut in the middle, and text continues below, at spaces, or after a comma, slash or
// hyphen where that serves; the widest first. Figures are whole, and no column gets narrower than 12.
std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                         std::size_t most_columns = output_columns());

// "1,234,567".
std::string with_commas(std::uint64_t number);

// Prints it, or as a JSON array of one object a row: text by the columns' titles.
void print_table(const std::vector<Column>& columns, const std::vector<Row>& rows, bool as_json);

}  // namespace ggufmill
