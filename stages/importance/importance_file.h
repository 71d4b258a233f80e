#pragma once
// Importance files: what llama-imatrix writes, as GGUF and in the legacy format; which entries count, and what a
// quantized file says of them.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/expression.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/stage.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {

// `count` numbers from byte `offset` on; whoever makes one has checked that they lie in the file. Thread-safe.
struct FloatRun {
  std::shared_ptr<const ByteSource> file;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  bool big_endian = false;

  // Blocking; reads the numbers from number `first` on. The caller keeps within `count`.
  Status read(std::uint64_t first, std::span<float> into) const;
  Extent extent() const { return {file->describe(), offset, count * sizeof(float), big_endian}; }
};

// Sums of squared activations, one for each column and expert, and what to divide them by. Thread-safe.
struct ImportanceEntry {
  std::string name;  // of the tensor
  FloatRun sums;
  FloatRun counts;         // GGUF: tokens seen, one for each of `counts.count` equal parts of the sums; legacy: none
  std::int32_t calls = 0;  // legacy: what all sums are divided by, where more than 0

  std::uint64_t size() const { return sums.count; }
  // The weights from number `first` on: the very float32 numbers that the reference computes (llama.cpp,
  // tools/quantize/quantize.cpp, load_imatrix). A part that saw no token has weights of 1. Exit code 4 for a weight or
  // count that is not finite and for a negative weight. The caller keeps within size().
  Status weights(std::uint64_t first, std::span<float> into) const;
};

// Reads all weights once, piece by piece, and so checks them; a hash of them.
Result<std::string> fingerprint_weights(const ImportanceEntry& entry);

struct ImportanceFile {
  std::string path;
  std::vector<std::string> files;        // the path, or all shards
  std::vector<ImportanceEntry> entries;  // at least one; names unique, not empty, UTF-8
  std::vector<std::string> datasets;     // that were used, where the file says so
  std::uint32_t chunks = 0;              // of text that were used; 0: the file does not say
  std::uint32_t chunk_size = 0;          // tokens; 0: the file does not say
};

// Reads the names and places of the entries, not the numbers; `open` is for GGUF, told by its magic. Every length is
// checked against what is left of the file; memory follows the number of entries, within limits, whatever the sizes.
// Exit code 4 for what is wrong.
Result<ImportanceFile> open_importance(const std::string& path, const ModelOpener& open);

// The GGUF file of F32 tensors NAME.in_sum2 and NAME.counts, and imatrix.datasets, imatrix.chunk_count and
// imatrix.chunk_size (llama.cpp, common/imatrix-loader.cpp, MIT): its entries, in order of name. Other tensors are not
// looked at.
Result<ImportanceFile> find_gguf_entries(const std::string& path, const Model& model);
// The legacy file (imatrix.dat): int32 number of entries; for each int32 length and bytes of the name, int32 calls,
// int32 number of sums, the float32 sums; then, in newer files, int32 chunks, and int32 length and bytes of the data
// set's name. Little-endian (llama.cpp, common/imatrix-loader.cpp, MIT). What stands behind the data set's name is not
// looked at.
Result<ImportanceFile> read_legacy_entries(std::shared_ptr<const ByteSource> file);
// Patterns over tensor names, as of --include-weights or --exclude-weights, which take plain text where these take
// regular expressions. At most one of the lists holds something; with neither, all count.
struct Selection {
  std::vector<Pattern> include;
  std::vector<Pattern> exclude;

  Result<bool> keeps(std::string_view name) const;
  // The texts of the patterns that match none of `names`.
  Result<std::vector<std::string>> idle(const std::vector<std::string_view>& names) const;
};

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
