#pragma once
// Importance files added up: the entries of several files under the same name count as one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/importance.h"
#include "stages/importance/importance_file.h"

namespace ggufmill {

// Tokens per chunk where no file states it, as in llama-imatrix.
inline constexpr std::uint32_t kUsualChunkSize = 512;

struct WeightedFile {
  ImportanceFile file;
  double weight = 1;  // factor for its sums and counts; finite and greater than 0
};

// All entries with the same name, in the order of the files. Thread-safe.
struct MergedEntry {
  struct Share {
    ImportanceEntry entry;
    ImportanceScale scale;
  };
  std::string name;
  std::vector<Share> shares;         // at least one, of equal size
  std::vector<std::int64_t> counts;  // tokens seen, for each of `counts.size()` equal parts

  std::uint64_t size() const { return shares[0].entry.size(); }
  // Adds up the sums, starting at number `first`. The range must not exceed size().
  Status sums(std::uint64_t first, std::span<float> into) const;
  // Returns true if all shares have sums of activations. Otherwise, the merged file has none.
  bool has_activations() const;
  // Adds up the sums of activations likewise; all shares must have them.
  Status activations(std::uint64_t first, std::span<float> into) const;
  // Computes the weights, as ImportanceEntry::weights() does for one file.
  Status weights(std::uint64_t first, std::span<float> into) const;
  // Returns what an importance needs to compute the same weights later.
  std::vector<ImportanceShare> described() const;
};

struct MergedImportance {
  std::string path;                  // the files and their weights, "a.gguf=2, b.gguf", for messages and metadata
  std::vector<std::string> files;    // all files read
  std::vector<MergedEntry> entries;  // names are unique
  std::vector<std::string> datasets;
  std::uint32_t chunks = 0;             // 0: not recorded
  std::uint32_t prediction_layers = 0;  // of the first file that states it
  std::vector<std::string> warnings{};  // about files that disagree

  ImportanceSummary summary() const { return summary_of(path, datasets, entries.size(), chunks); }
};

// Returns the chunk size that the first of the files states; kUsualChunkSize if none does.
std::uint32_t chunk_size_of(std::span<const WeightedFile> files);

// Adds up sums and counts of entries with the same name, in the order of the files, as llama-imatrix does with
// --in-file (llama.cpp, tools/imatrix/imatrix.cpp, MIT). Each sum is multiplied by the file's weight in single
// precision; each count is multiplied and rounded. Legacy files store averages, which are multiplied by `chunk_size`
// first. The number of chunks is rounded to nearest. Entries are sorted by name. Reads the counts. Fails with exit code
// 4 if entries with the same name differ in size.
Result<MergedImportance> add_up(const std::vector<WeightedFile>& files, std::uint32_t chunk_size);

// Returns one file with its numbers as they are; its weights are those of llama-quantize. Keeps the order of entries.
Result<MergedImportance> alone(const ImportanceFile& file);

}  // namespace ggufmill
