#pragma once
// Importance files as written by llama-imatrix, in GGUF and in the legacy format; the selection of entries; and the
// metadata that quantized files contain about them.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/expression.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/stage.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {

// `count` numbers, starting at byte `offset`. The creator has checked that they are in the file. Thread-safe.
struct FloatRun {
  std::shared_ptr<const ByteSource> file;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  bool big_endian = false;

  // Reads numbers, starting at number `first`. Blocks. The range must not exceed `count`.
  Status read(std::uint64_t first, std::span<float> into) const;
  Extent extent() const { return {file->describe(), offset, count * sizeof(float), big_endian}; }
};

// Sums of squared activations for each column and expert, and their divisors. Thread-safe.
struct ImportanceEntry {
  std::string name;  // name of the tensor
  FloatRun sums;
  FloatRun counts;         // GGUF: tokens seen, for each of `counts.count` equal parts of `sums`
  std::int32_t calls = 0;  // legacy: divisor of all sums if greater than 0
  FloatRun activations{};  // sums of the activations themselves, as many as `sums`; no file: not recorded

  std::uint64_t size() const { return sums.count; }
  // Reads `count` sums, starting at number `first`, and the counts of the parts that contain them. The range must not
  // be empty or exceed size().
  Result<ImportanceNumbers> numbers(std::uint64_t first, std::uint64_t count) const;
  // Computes the weights, starting at number `first`: the same float32 values as the reference (llama.cpp,
  // tools/quantize/quantize.cpp, load_imatrix). A part that saw no token has weights of 1. Fails with exit code 4 for a
  // weight or count that is not finite, and for a negative weight. The range must not exceed size().
  Status weights(std::uint64_t first, std::span<float> into) const;
};

// Computes weights, starting at number `first`, as ImportanceEntry::weights() does.
using WeightsReader = std::function<Status(std::uint64_t first, std::span<float> into)>;
// Reads `size` weights in pieces; returns a hash of them.
Result<std::string> fingerprint_weights(std::uint64_t size, const WeightsReader& read);

struct ImportanceFile {
  std::string path;
  std::vector<std::string> files;        // the path, or all shards
  std::vector<ImportanceEntry> entries;  // at least one; names are unique, non-empty UTF-8
  std::vector<std::string> datasets;     // data sets that were used, if recorded
  std::uint32_t chunks = 0;              // number of text chunks used; 0: not recorded
  std::uint32_t chunk_size = 0;          // in tokens; 0: not recorded
  std::uint32_t prediction_layers = 0;   // number of last layers that predict further tokens (NextN)
};

// Returns true if a file begins as GGUF files do; other importance files are in the legacy format.
Result<bool> is_gguf_importance(const ByteSource& file);

// Reads the names and positions of the entries, but not the numbers. `open` is used for GGUF, recognized by its magic.
// Every length is checked against the rest of the file. Memory depends only on the number of entries, within limits.
// Fails with exit code 4 for invalid input.
Result<ImportanceFile> open_importance(const std::string& path, const ModelOpener& open);

// Returns the entries of a GGUF file, sorted by name: F32 tensors NAME.in_sum2, NAME.counts and, in newer files,
// NAME.in_sum; and the keys imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size and, optionally,
// imatrix.n_layer_nextn (llama.cpp, common/imatrix-loader.cpp, MIT). Ignores other tensors.
Result<ImportanceFile> find_gguf_entries(const std::string& path, const Model& model);
// Reads the legacy format (imatrix.dat): int32 number of entries; for each entry int32 length and bytes of the name,
// int32 calls, int32 number of sums, the sums as float32; then, in newer files, int32 chunks, and int32 length and
// bytes of the data set's name. Little-endian (llama.cpp, common/imatrix-loader.cpp, MIT). Data after the name of the
// data set is ignored.
Result<ImportanceFile> read_legacy_entries(std::shared_ptr<const ByteSource> file);
// Patterns for tensor names, like --include-weights and --exclude-weights of the reference. The reference matches plain
// text, this program regular expressions. At most one of the lists is not empty; if both are empty, all entries are
// kept.
struct Selection {
  std::vector<Pattern> include{};
  std::vector<Pattern> exclude{};
  Origin exclude_origin{};

  Result<bool> keeps(std::string_view name) const;
  // Returns the texts of the patterns that match none of `names`.
  Result<std::vector<std::string>> idle(const std::vector<std::string_view>& names) const;
};

struct ImportanceSummary {
  std::string file;  // the path as given
  std::optional<std::string> dataset;
  std::uint32_t entries = 0;  // number of entries kept
  std::uint32_t chunks = 0;   // 0: unknown
};

ImportanceSummary summary_of(std::string file, const std::vector<std::string>& datasets, std::size_t entries,
                             std::uint32_t chunks);
// Opens the file, drops the entries that `selection` does not keep, and summarizes the rest.
Result<ImportanceSummary> summarize_importance(const std::string& path, const Selection& selection,
                                               const ModelOpener& open);

// Removes the entries that `selection` does not keep from `file`.
Status select_entries(const Selection& selection, ImportanceFile& file);

// Returns the keys quantize.imatrix.file, .dataset, .entries_count and .chunks_count, in the reference's order and with
// strings truncated to 127 bytes as in the reference. Omits unknown values; returns nothing if there are no entries.
std::vector<MetadataEntry> metadata_of(const ImportanceSummary& summary);

}  // namespace ggufmill
