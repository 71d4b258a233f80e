#pragma once
// Reads tables of golden values: one case per line, fields separated by tabs, field names in the first line.

#include <string>
#include <vector>

namespace ggufmill {

struct Tsv {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // each as long as `names`
};

// Throws std::runtime_error, with file and line, if the file cannot be read, the length of a row differs from that of
// the first line, or the table has no rows.
Tsv read_tsv(const std::string& path);

}  // namespace ggufmill
