#pragma once
// Importance files: what llama-imatrix writes, as GGUF and in the legacy format.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/stage.h"
#include "stages/importance/importance_entry.h"

namespace ggufmill {

struct ImportanceFile {
  std::string path;
  std::vector<std::string> files;        // the path, or all shards
  std::vector<ImportanceEntry> entries;  // at least one; names unique, not empty, UTF-8
  std::optional<std::string> dataset;    // the first that was used, where the file says one
  std::uint32_t chunks = 0;              // of text that were used; 0: the file does not say
};

// Reads the names and places of the entries, not the numbers; `open` is for GGUF, told by its magic. Every length is
// checked against what is left of the file; memory follows the number of entries, within limits, whatever the sizes.
// Exit code 4 for what is wrong.
Result<ImportanceFile> open_importance(const std::string& path, const ModelOpener& open);

}  // namespace ggufmill
