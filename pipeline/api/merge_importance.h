#pragma once
// Describes importance files, adds them up, and writes the result in either format.

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
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

// Does the same for files given as text, "FILE" or "FILE=WEIGHT"; if a file with that exact name exists, the text is a
// file name. An output ending in .dat is in the legacy format. Without a chunk size, that of the first file which
// states it is used. `open` opens GGUF files.
Result<Merged> merge_importance(const std::vector<std::string>& inputs, const std::string& output,
                                std::optional<std::uint32_t> chunk_size, bool overwrite, const ModelOpener& open);

// Returns {file, datasets, chunks, entries: [{name, columns, parts, tokens, unseen, mean, max, top}]}. `unseen` is the
// number of parts without any tokens; `mean`, `max` and `top`, the share of the sum held by the largest 1 % of the
// columns, describe the weights. Reads all weights, one part at a time.
Result<boost::json::object> describe_importance(const std::string& path, const ModelOpener& open);

}  // namespace ggufmill
