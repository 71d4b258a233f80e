// The description of an importance file.

#include <algorithm>
#include <functional>

#include "pipeline/api/merge_importance.h"

namespace ggufmill {
namespace {

Result<DescribedEntry> look_at(const ImportanceEntry& entry) {
  DescribedEntry shown;
  shown.name = entry.name;
  shown.chunks = static_cast<std::uint64_t>(std::max(0, entry.calls));
  shown.parts = std::max<std::uint64_t>(1, entry.counts.count);
  shown.columns = entry.size() / shown.parts;
  if (entry.counts.count != 0) {
    std::vector<float> counts(entry.counts.count);
    BOOST_OUTCOME_TRY(entry.counts.read(0, counts));
    double tokens = 0;
    for (const float count : counts) tokens += count;
    shown.tokens = tokens;
    shown.unseen = static_cast<std::uint64_t>(std::ranges::count(counts, 0.0f));
  }
  // Computing the share needs all weights of a part in memory. Parts are rows of one matrix, which every user of the
  // entry holds in memory anyway.
  double sum = 0, top = 0;
  std::vector<float> weights(shown.columns);
  for (std::uint64_t part = 0; part < shown.parts; ++part) {
    BOOST_OUTCOME_TRY(entry.weights(part * shown.columns, weights));
    for (const float weight : weights) sum += weight;
    const auto few = static_cast<std::ptrdiff_t>((shown.columns + 99) / 100);
    std::ranges::nth_element(weights, weights.begin() + few - 1, std::ranges::greater());
    for (std::ptrdiff_t i = 0; i < few; ++i) top += weights[static_cast<std::size_t>(i)];
    shown.max = std::max(shown.max, static_cast<double>(*std::max_element(weights.begin(), weights.begin() + few)));
  }
  shown.mean = sum / static_cast<double>(entry.size());
  shown.top = sum > 0 ? top / sum : 0;
  return shown;
}

}  // namespace

Result<DescribedImportance> describe_importance(const std::string& path, const ModelOpener& open) {
  BOOST_OUTCOME_TRY(const ImportanceFile file, open_importance(path, open));
  DescribedImportance described{path, file.datasets, file.chunks, {}};
  for (const ImportanceEntry& entry : file.entries) {
    BOOST_OUTCOME_TRY(DescribedEntry shown, look_at(entry));
    described.entries.push_back(std::move(shown));
  }
  return described;
}

}  // namespace ggufmill
