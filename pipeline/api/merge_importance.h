#pragma once
// Importance files added up and written, in either format.

#include <cstdint>
#include <string>
#include <vector>

#include "stages/importance/importance_file.h"

namespace ggufmill {

enum class ImportanceFormat { kGguf, kLegacy };

struct MergePart {
  ImportanceFile file;
  double weight = 1;  // what its sums and counts are multiplied by; finite and more than 0
};

struct MergeOptions {
  std::string output;
  ImportanceFormat format = ImportanceFormat::kGguf;
  std::uint32_t chunk_size = 512;  // tokens of a chunk: of what is written, and of legacy files, which do not say it
  bool overwrite = false;
};

struct Merged {
  std::uint64_t entries = 0, bytes = 0;
  std::vector<std::string> warnings;  // of entries that are left out or have parts without a token
};

// Sums and counts of entries of one name are added, in the order of the parts, as llama-imatrix does with --in-file
// (llama.cpp, tools/imatrix/imatrix.cpp, MIT): with weights of 1 the same bytes. Legacy files hold averages: sums and
// calls are multiplied by chunk_size, and written the other way round, where entries that saw no token are left out
// and parts that saw none have sums of 1. Memory does not depend on the size of the files but for the counts. Exit code
// 4 for entries of one name and different sizes.
Result<Merged> merge_importance(const std::vector<MergePart>& parts, const MergeOptions& options);

}  // namespace ggufmill
