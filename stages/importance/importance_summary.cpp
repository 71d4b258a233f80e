#include "stages/importance/importance_summary.h"

namespace ggufmill {
namespace {

constexpr std::size_t kLongestText = 127;  // bytes of a text in the reference's key overrides

MetadataValue cut_text(const std::string& text) {
  return metadata_string(std::string_view(text).substr(0, kLongestText));
}

MetadataValue count(std::uint32_t value) { return metadata_unsigned(MetadataType::kUint32, value); }

}  // namespace

Status select_entries(const Selection& selection, ImportanceFile& file) {
  std::vector<ImportanceEntry> kept;
  for (ImportanceEntry& entry : file.entries) {
    BOOST_OUTCOME_TRY(const bool keep, selection.keeps(entry.name));
    if (keep) kept.push_back(std::move(entry));
  }
  file.entries = std::move(kept);
  return ok();
}

ImportanceSummary summary_of(const ImportanceFile& file) {
  return {file.path, file.dataset, static_cast<std::uint32_t>(file.entries.size()), file.chunks};
}

Result<ImportanceSummary> summarize_importance(const std::string& path, const Selection& selection,
                                               const ModelOpener& open) {
  BOOST_OUTCOME_TRY(ImportanceFile file, open_importance(path, open));
  BOOST_OUTCOME_TRY(select_entries(selection, file));
  return summary_of(file);
}

std::vector<MetadataEntry> metadata_of(const ImportanceSummary& summary) {
  if (summary.entries == 0) return {};
  std::vector<MetadataEntry> entries;
  entries.push_back({"quantize.imatrix.file", cut_text(summary.file)});
  if (summary.dataset) entries.push_back({"quantize.imatrix.dataset", cut_text(*summary.dataset)});
  entries.push_back({"quantize.imatrix.entries_count", count(summary.entries)});
  if (summary.chunks > 0) entries.push_back({"quantize.imatrix.chunks_count", count(summary.chunks)});
  return entries;
}

}  // namespace ggufmill
