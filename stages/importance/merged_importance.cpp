#include "stages/importance/merged_importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxCounts = 16 << 20;                 // limit for all entries together
constexpr std::int64_t kUnknownCount = std::int64_t{1} << 52;  // a legacy entry whose number of calls is not recorded

ImportanceRun run_of(const MergedEntry::Share& share) {
  return {share.entry.sums.file->path(), share.scale, share.entry.counts.count};
}

Error mismatch(const MergedEntry::Share& share, const std::string& what) {
  return input_error(share.entry.sums.file->path(),
                     fmt::format("the entry of tensor {} has {}", quoted_name(share.entry.name), what),
                     "only files of the same model can be merged");
}

Result<std::vector<float>> counts_in(const ImportanceEntry& entry) {
  std::vector<float> counts(std::max<std::uint64_t>(1, entry.counts.count));
  if (entry.counts.count != 0) {
    BOOST_OUTCOME_TRY(entry.counts.read(0, counts));
  }
  return counts;
}

Status add_counts(const MergedEntry::Share& share, MergedEntry& sum) {
  if (share.entry.size() != sum.size())
    return mismatch(share, fmt::format("{} sums, but another file has {}", share.entry.size(), sum.size()));
  BOOST_OUTCOME_TRY(const std::vector<float> counts, counts_in(share.entry));
  const bool is_legacy = share.entry.counts.count == 0;
  if (sum.counts.empty()) sum.counts.assign(counts.size(), 0);
  if (sum.counts.size() == 1) sum.counts.resize(counts.size(), sum.counts[0]);
  if (!is_legacy && counts.size() != sum.counts.size())
    return mismatch(share, fmt::format("{} counts, but another file has {}", counts.size(), sum.counts.size()));
  for (std::size_t i = 0; i < sum.counts.size(); ++i) {
    BOOST_OUTCOME_TRY(const std::int64_t more, counted(run_of(share), sum.name, counts[is_legacy ? 0 : i]));
    sum.counts[i] += more;
  }
  return ok();
}

// Returns the counts of an entry that is alone. Numbers that are not counts are reported when weights are computed.
Result<std::vector<std::int64_t>> counts_alone(const ImportanceEntry& entry) {
  if (entry.counts.count == 0)
    return std::vector<std::int64_t>{entry.calls > 0 ? std::int64_t{entry.calls} * kUsualChunkSize : kUnknownCount};
  BOOST_OUTCOME_TRY(const std::vector<float> counts, counts_in(entry));
  std::vector<std::int64_t> rounded;
  for (const float count : counts) rounded.push_back(std::fabs(count) < 0x1p62f ? std::llround(count) : 0);
  return rounded;
}

// Adds up one kind of numbers of all shares.
Status add_runs(const std::vector<MergedEntry::Share>& shares, FloatRun ImportanceEntry::*run, std::uint64_t first,
                std::span<float> into) {
  std::vector<float> piece(into.size());
  std::ranges::fill(into, 0.0f);
  for (const MergedEntry::Share& share : shares) {
    BOOST_OUTCOME_TRY((share.entry.*run).read(first, piece));
    add_sums(share.scale, piece, into);
  }
  return ok();
}

void add_prediction_layers(const ImportanceFile& file, MergedImportance& merged) {
  if (file.prediction_layers == 0) return;
  if (merged.prediction_layers == 0) merged.prediction_layers = file.prediction_layers;
  if (merged.prediction_layers != file.prediction_layers)
    merged.warnings.push_back(fmt::format("{}: {} layers predict further tokens, but {} in a file before it: using {}",
                                          file.path, file.prediction_layers, merged.prediction_layers,
                                          merged.prediction_layers));
}

Status check_counts(std::uint64_t counts, const MergedEntry::Share& share) {
  if (counts > kMaxCounts) return mismatch(share, "too many counts");
  return ok();
}

std::string describe_weighted(const WeightedFile& file) {
  return file.weight == 1 ? file.file.path : fmt::format("{}={}", file.file.path, file.weight);
}

}  // namespace

Status MergedEntry::sums(std::uint64_t first, std::span<float> into) const {
  return add_runs(shares, &ImportanceEntry::sums, first, into);
}

bool MergedEntry::has_activations() const {
  return std::ranges::all_of(shares, [](const Share& share) { return share.entry.activations.file != nullptr; });
}

Status MergedEntry::activations(std::uint64_t first, std::span<float> into) const {
  return add_runs(shares, &ImportanceEntry::activations, first, into);
}

Status MergedEntry::weights(std::uint64_t first, std::span<float> into) const {
  if (into.empty()) return ok();
  std::vector<ImportanceRun> runs;
  std::vector<ImportanceNumbers> numbers;
  for (const Share& share : shares) {
    runs.push_back(run_of(share));
    BOOST_OUTCOME_TRY(ImportanceNumbers read, share.entry.numbers(first, into.size()));
    numbers.push_back(std::move(read));
  }
  BOOST_OUTCOME_TRY(const std::vector<float> weights, to_weights(name, size(), runs, first, std::move(numbers)));
  std::ranges::copy(weights, into.begin());
  return ok();
}

std::vector<ImportanceShare> MergedEntry::described() const {
  std::vector<ImportanceShare> all;
  for (const Share& share : shares)
    all.push_back(
        {share.entry.sums.extent(), share.entry.counts.file ? share.entry.counts.extent() : Extent{}, share.scale});
  return all;
}

std::uint32_t chunk_size_of(std::span<const WeightedFile> files) {
  const auto stated = std::ranges::find_if(files, [](const WeightedFile& each) { return each.file.chunk_size != 0; });
  return stated == files.end() ? kUsualChunkSize : stated->file.chunk_size;
}

Result<MergedImportance> add_up(const std::vector<WeightedFile>& files, std::uint32_t chunk_size) {
  MergedImportance merged;
  std::map<std::string, MergedEntry> by_name;
  for (const WeightedFile& each : files) {
    const ImportanceFile& file = each.file;
    merged.path += (merged.path.empty() ? "" : ", ") + describe_weighted(each);
    merged.files.insert(merged.files.end(), file.files.begin(), file.files.end());
    merged.datasets.insert(merged.datasets.end(), file.datasets.begin(), file.datasets.end());
    add_prediction_layers(file, merged);
    for (const ImportanceEntry& entry : file.entries)
      by_name[entry.name].shares.push_back(
          {entry, {entry.calls, each.weight, entry.counts.count == 0 ? chunk_size : 0}});
  }
  std::uint64_t counts = 0;
  std::int64_t most = 0;
  for (auto& [name, entry] : by_name) {
    entry.name = name;
    for (const MergedEntry::Share& share : entry.shares) {
      BOOST_OUTCOME_TRY(check_counts(counts + share.entry.counts.count, share));
      BOOST_OUTCOME_TRY(add_counts(share, entry));
    }
    counts += entry.counts.size();
    most = std::max(most, *std::ranges::max_element(entry.counts));
    merged.entries.push_back(std::move(entry));
  }
  const std::int64_t chunks = (most + chunk_size / 2) / chunk_size;
  if (chunks > INT32_MAX) return input_error(merged.path, "too many tokens for the format");
  merged.chunks = static_cast<std::uint32_t>(chunks);
  return merged;
}

Result<MergedImportance> alone(const ImportanceFile& file) {
  MergedImportance merged{file.path, file.files, {}, file.datasets, file.chunks, file.prediction_layers};
  std::uint64_t counts = 0;
  for (const ImportanceEntry& entry : file.entries) {
    MergedEntry& made = merged.entries.emplace_back(MergedEntry{entry.name, {{entry, {entry.calls}}}, {}});
    BOOST_OUTCOME_TRY(check_counts(counts += entry.counts.count, made.shares[0]));
    BOOST_OUTCOME_TRY(made.counts, counts_alone(entry));
  }
  return merged;
}

}  // namespace ggufmill
