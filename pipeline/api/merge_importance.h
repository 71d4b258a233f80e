#pragma once
// Adds up importance files and writes the result in either format.

#include <cstdint>
#include <string>
#include <vector>

#include "stages/importance/importance_file.h"

namespace ggufmill {

enum class ImportanceFormat { kGguf, kLegacy };

struct MergePart {
  ImportanceFile file;
  double weight = 1;  // factor for its sums and counts; finite and greater than 0
};

struct MergeOptions {
  std::string output;
  ImportanceFormat format = ImportanceFormat::kGguf;
  std::uint32_t chunk_size = 512;  // tokens per chunk, for the output and for legacy files, which do not state it
  bool overwrite = false;
};

struct Merged {
  std::uint64_t entries = 0, bytes = 0;
  std::vector<std::string> warnings;  // about entries that are omitted or have parts that saw no token
};

// Adds up the sums and counts of entries with the same name, in the order of the parts, as llama-imatrix does with
// --in-file (llama.cpp, tools/imatrix/imatrix.cpp, MIT); if all weights are 1, the bytes are the same. Legacy files
// store averages: when they are read, sums and calls are multiplied by chunk_size; when they are written, the reverse
// is done, entries that saw no token are omitted, and parts that saw none get sums of 1. Memory use does not depend on
// the size of the files, except for the counts. Fails with exit code 4 if entries with the same name differ in size.
Result<Merged> merge_importance(const std::vector<MergePart>& parts, const MergeOptions& options);

}  // namespace ggufmill
