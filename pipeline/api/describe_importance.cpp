// The description of an importance file.

#include <algorithm>
#include <cmath>
#include <functional>

#include "pipeline/api/merge_importance.h"
#include "stages/importance/covariance_file.h"

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

Result<DescribedInput> look_at(const CovarianceInput& input) {
  constexpr std::uint64_t kAtOnce = 1 << 16;
  DescribedInput shown{input.owner,
                       input.tensors,
                       input.columns(),
                       input.experts(),
                       input.covariance.is_pooled,
                       0,
                       input.covariance.held_out};
  const std::uint64_t length = *input.covariance.packing().length();
  std::vector<float> piece;
  double squares = 0;
  for (std::uint64_t set = 0; set < input.sets(); ++set)
    for (std::uint64_t first = 0; first < length; first += piece.size()) {
      piece.resize(std::min(kAtOnce, length - first));
      BOOST_OUTCOME_TRY(input.read(set, first, piece));
      for (const float correlation : piece) squares += double{correlation} * double{correlation};
    }
  if (length != 0) shown.rms = std::sqrt(squares / static_cast<double>(length) / static_cast<double>(input.sets()));
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
  BOOST_OUTCOME_TRY(const bool has_covariance, is_covariance_file(path, open));
  if (has_covariance) {
    BOOST_OUTCOME_TRY(const CovarianceFile covariance, open_covariance(path, open));
    described.covariance.emplace().block = covariance.block;
    for (const CovarianceInput& input : covariance.inputs) {
      BOOST_OUTCOME_TRY(DescribedInput shown, look_at(input));
      described.covariance->inputs.push_back(std::move(shown));
    }
  }
  return described;
}

}  // namespace ggufmill
