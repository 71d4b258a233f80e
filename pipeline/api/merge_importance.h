#pragma once
// Describes importance files, adds them up, and writes the result in either format.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stages/importance/merged_importance.h"

namespace ggufmill {

enum class ImportanceFormat { kGguf, kLegacy };

struct MergeOptions {
  std::string output;
  ImportanceFormat format = ImportanceFormat::kGguf;
  std::uint32_t chunk_size =
      kUsualChunkSize;  // tokens per chunk, for the output and for legacy files, which do not state it
  bool overwrite = false;
};

struct Merged {
  std::uint64_t entries = 0, bytes = 0;
  std::vector<std::string> warnings;  // about entries that are omitted or have parts that saw no token
};

// Writes the sum of importance files, as add_up() of stages/importance/merged_importance.h returns it, with statistics
// of the activations; if all weights are 1, the bytes are those of llama-imatrix with --in-file, provided that legacy
// files come after a file that states its chunk size, or that it is 512. Legacy files store averages: when they are
// written, sums are divided, entries that saw no token are omitted, and parts that saw none get sums of 1. Memory use
// does not depend on the size of the files, except for the counts. Fails with exit code 4 if entries with the same name
// differ in size.
Result<Merged> merge_importance(const std::vector<WeightedFile>& parts, const MergeOptions& options);

// Does the same for files given as text, "FILE" or "FILE=WEIGHT"; if a file with that exact name exists, the text is a
// file name. An output ending in .dat is in the legacy format. Without a chunk size, that of the first file which
// states it is used. `open` opens GGUF files. Covariance files give a covariance file, unless `covariances` or the
// format of the output say that only the importance is wanted; they cannot be added to files that are none.
enum class Covariances : std::uint8_t { kMerge, kOmit };
Result<Merged> merge_importance(const std::vector<std::string>& inputs, const std::string& output,
                                std::optional<std::uint32_t> chunk_size, bool overwrite, const ModelOpener& open,
                                Covariances covariances = Covariances::kMerge);

// An entry of an importance file, with a description of its weights.
struct DescribedEntry {
  std::string name;
  std::uint64_t columns = 0, parts = 0;
  std::uint64_t unseen = 0;        // parts without any tokens
  std::optional<double> tokens{};  // of all parts; none in the legacy format, which counts chunks
  std::uint64_t chunks = 0;
  double mean = 0, max = 0;
  double top = 0;  // share of the sum held by the largest 1 % of the columns
};

// An input of a covariance file, with a description of its correlations.
struct DescribedInput {
  std::string name;                  // the tensor that it is named after
  std::vector<std::string> tensors;  // all that have it
  std::uint64_t columns = 0, experts = 0;
  bool is_pooled = false;      // the experts have common correlations
  double rms = 0;              // root of the mean square of the correlations
  std::uint64_t held_out = 0;  // held-out vectors of each expert
};

struct DescribedCovariance {
  std::uint32_t block = 0;  // columns of the diagonal blocks; 0: one block of all columns
  std::vector<DescribedInput> inputs;
};

struct DescribedImportance {
  std::string file;
  std::vector<std::string> datasets;
  std::uint64_t chunks = 0;
  std::vector<DescribedEntry> entries;
  std::optional<DescribedCovariance> covariance{};  // of a covariance file
};

// Reads all weights, one part at a time, and all correlations, some at a time.
Result<DescribedImportance> describe_importance(const std::string& path, const ModelOpener& open);

}  // namespace ggufmill
