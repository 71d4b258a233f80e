#pragma once
// What a quantized file says about the importance that was used.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stages/importance/importance_file.h"
#include "stages/importance/selection.h"

namespace ggufmill {

struct ImportanceSummary {
  std::string file;  // the path as it was given
  std::optional<std::string> dataset;
  std::uint32_t entries = 0;  // that count
  std::uint32_t chunks = 0;   // 0: not known
};

// Opens the file, drops the entries that `selection` does not keep, and sums up the rest.
Result<ImportanceSummary> summarize_importance(const std::string& path, const Selection& selection,
                                               const ModelOpener& open);
ImportanceSummary summary_of(const ImportanceFile& file);

// Leaves in `file` the entries that `selection` keeps.
Status select_entries(const Selection& selection, ImportanceFile& file);

// The keys quantize.imatrix.file, .dataset, .entries_count and .chunks_count in the reference's order, texts cut to 127
// bytes as it does; those that are not known left out, none at all without entries.
std::vector<MetadataEntry> metadata_of(const ImportanceSummary& summary);

}  // namespace ggufmill
