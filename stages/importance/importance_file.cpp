#include "stages/importance/importance_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/importance.h"

namespace ggufmill {
namespace {

constexpr std::size_t kPiece = 64 * 1024;  // number of weights hashed at a time

struct HashFree {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

Result<bool> any_matches(const std::vector<Pattern>& patterns, std::string_view name) {
  for (const Pattern& pattern : patterns) {
    BOOST_OUTCOME_TRY(const bool found, pattern.matches(name));
    if (found) return true;
  }
  return false;
}

constexpr std::size_t kMaxTextLength = 127;  // bytes of a string in the reference's key overrides

MetadataValue cut_text(const std::string& text) {
  return metadata_string(std::string_view(text).substr(0, kMaxTextLength));
}

MetadataValue count(std::uint32_t value) { return metadata_unsigned(MetadataType::kUint32, value); }

}  // namespace

Result<bool> is_gguf_importance(const ByteSource& file) {
  std::array<char, 4> magic{};
  if (file.bytes() >= magic.size()) {
    BOOST_OUTCOME_TRY(file.read(0, std::as_writable_bytes(std::span(magic))));
  }
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

Result<ImportanceFile> open_importance(const std::string& path, const ModelOpener& open) {
  BOOST_OUTCOME_TRY(std::shared_ptr<const ByteSource> file, open_source(path));
  BOOST_OUTCOME_TRY(const bool is_gguf, is_gguf_importance(*file));
  if (!is_gguf) return read_legacy_entries(std::move(file));
  BOOST_OUTCOME_TRY(const Model model, open(path));
  return find_gguf_entries(path, model);
}

Status FloatRun::read(std::uint64_t first, std::span<float> into) const {
  const std::span<std::byte> bytes = std::as_writable_bytes(into);
  BOOST_OUTCOME_TRY(file->read(offset + first * sizeof(float), bytes));
  if (big_endian) swap_words(sizeof(float), bytes);
  return ok();
}

Result<ImportanceNumbers> ImportanceEntry::numbers(std::uint64_t first, std::uint64_t count) const {
  ImportanceNumbers read{std::vector<float>(count), {}};
  BOOST_OUTCOME_TRY(sums.read(first, read.sums));
  if (counts.file) {
    const std::uint64_t part = size() / counts.count, first_part = first / part;
    read.counts.resize((first + count - 1) / part - first_part + 1);
    BOOST_OUTCOME_TRY(counts.read(first_part, read.counts));
  }
  return read;
}

Status ImportanceEntry::weights(std::uint64_t first, std::span<float> into) const {
  if (into.empty()) return ok();
  BOOST_OUTCOME_TRY(ImportanceNumbers read, numbers(first, into.size()));
  std::vector<ImportanceNumbers> all;
  all.push_back(std::move(read));
  const ImportanceRun run{sums.file->path(), {calls}, counts.count};
  BOOST_OUTCOME_TRY(const std::vector<float> weights, to_weights(name, size(), {&run, 1}, first, std::move(all)));
  std::ranges::copy(weights, into.begin());
  return ok();
}

Result<std::string> fingerprint_weights(std::uint64_t size, const WeightsReader& read) {
  const std::unique_ptr<XXH3_state_t, HashFree> state(XXH3_createState());
  if (!state) return Error{ExitCode::kTransient, "", "not enough memory for a hash", "", ""};
  XXH3_128bits_reset(state.get());
  std::vector<float> piece(std::min<std::uint64_t>(kPiece, size));
  for (std::uint64_t first = 0; first < size; first += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), size - first));
    BOOST_OUTCOME_TRY(read(first, piece));
    XXH3_128bits_update(state.get(), piece.data(), piece.size() * sizeof(float));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<bool> Selection::keeps(std::string_view name) const {
  BOOST_OUTCOME_TRY(const bool excluded, any_matches(exclude, name));
  if (excluded || include.empty()) return !excluded;
  return any_matches(include, name);
}

Result<std::vector<std::string>> Selection::idle(const std::vector<std::string_view>& names) const {
  std::vector<std::string> texts;
  for (const auto* patterns : {&include, &exclude})
    for (const Pattern& pattern : *patterns) {
      bool used = false;
      for (auto name = names.begin(); name != names.end() && !used; ++name) {
        BOOST_OUTCOME_TRY(used, pattern.matches(*name));
      }
      if (!used) texts.push_back(pattern.text());
    }
  return texts;
}

Status select_entries(const Selection& selection, ImportanceFile& file) {
  std::vector<ImportanceEntry> kept;
  for (ImportanceEntry& entry : file.entries) {
    BOOST_OUTCOME_TRY(const bool keep, selection.keeps(entry.name));
    if (keep) kept.push_back(std::move(entry));
  }
  file.entries = std::move(kept);
  return ok();
}

ImportanceSummary summary_of(std::string file, const std::vector<std::string>& datasets, std::size_t entries,
                             std::uint32_t chunks) {
  std::optional<std::string> first;
  if (!datasets.empty()) first = datasets.front();
  return {std::move(file), std::move(first), static_cast<std::uint32_t>(entries), chunks};
}

Result<ImportanceSummary> summarize_importance(const std::string& path, const Selection& selection,
                                               const ModelOpener& open) {
  BOOST_OUTCOME_TRY(ImportanceFile file, open_importance(path, open));
  BOOST_OUTCOME_TRY(select_entries(selection, file));
  return summary_of(path, file.datasets, file.entries.size(), file.chunks);
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
