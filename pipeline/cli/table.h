#pragma once
// Tables for people: columns as wide as their widest cell.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/text.h"  // human_bytes

namespace ggufmill {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

using Row = std::vector<std::string>;

// A title line and one line a row, two spaces between columns, no trailing spaces.
std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows);

// "1,234,567".
std::string with_commas(std::uint64_t number);

}  // namespace ggufmill
