#pragma once
// Tables of golden figures: one line a case, fields separated by tabs, the first line names them.

#include <string>
#include <vector>

namespace ggufmill {

struct Tsv {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // each as long as `names`
};

// Throws std::runtime_error, with file and line, for a file that cannot be read, a row of another length than the
// first line, and a table without rows.
Tsv read_tsv(const std::string& path);

}  // namespace ggufmill
