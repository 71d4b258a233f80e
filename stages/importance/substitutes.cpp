#include "stages/importance/coverage.h"

#include <algorithm>
#include <utility>

namespace ggufmill {
namespace {

constexpr std::uint64_t kWeightsAtOnce = 4096;  // number of weights read at a time to find one that is not 0

// Returns the least number of tokens that any part of a matrix saw.
std::int64_t tokens_of(const EntryUse& use, std::uint64_t matrix) {
  const std::vector<std::int64_t>& counts = use.entry->counts;
  const std::uint64_t part = use.entry->size() / counts.size(), first = matrix * use.columns;
  return *std::min_element(counts.begin() + static_cast<std::ptrdiff_t>(first / part),
                           counts.begin() + static_cast<std::ptrdiff_t>((first + use.columns - 1) / part + 1));
}

// Computes the weights of a range of columns of consecutive matrices, with substitutes.
Status weights_with(const Importance& importance, const MergedEntry* entry, std::uint64_t first,
                    std::span<float> into) {
  while (!into.empty()) {
    const std::uint64_t matrix = first / importance.columns, column = first % importance.columns;
    const std::span<float> here = into.first(std::min<std::uint64_t>(importance.columns - column, into.size()));
    if (importance.is_substituted(matrix)) {
      std::copy_n(importance.substitute->begin() + static_cast<std::ptrdiff_t>(column), here.size(), here.begin());
    } else {
      BOOST_OUTCOME_TRY(entry->weights(first, here));
    }
    first += here.size();
    into = into.subspan(here.size());
  }
  return ok();
}

}  // namespace

EntryUse use_of(const MergedEntry& entry, std::uint64_t columns, std::uint64_t matrices, std::uint64_t least_counts) {
  EntryUse use{&entry, columns, matrices};
  for (std::uint64_t matrix = 0; matrix < matrices; ++matrix)
    if (std::cmp_less(tokens_of(use, matrix), least_counts)) use.rare.push_back(matrix);
  return use;
}

bool EntryUse::is_rare(std::uint64_t matrix) const { return std::ranges::binary_search(rare, matrix); }

Result<std::vector<std::uint64_t>> zero_matrices(const EntryUse& use) {
  std::vector<std::uint64_t> zero;
  std::vector<float> piece;
  for (std::uint64_t matrix = 0; matrix < use.matrices; ++matrix) {
    bool is_zero = !use.is_rare(matrix);
    for (std::uint64_t column = 0; column < use.columns && is_zero; column += piece.size()) {
      piece.resize(std::min(kWeightsAtOnce, use.columns - column));
      BOOST_OUTCOME_TRY(use.entry->weights(matrix * use.columns + column, piece));
      is_zero = std::ranges::all_of(piece, [](float weight) { return weight == 0; });
    }
    if (is_zero) zero.push_back(matrix);
  }
  return zero;
}

Result<std::vector<float>> mean_weights(const EntryUse& use) {
  std::vector<float> weights(use.columns);
  std::vector<double> sums(use.columns);
  double tokens = 0;
  for (std::uint64_t matrix = 0; matrix < use.matrices; ++matrix) {
    if (use.is_rare(matrix)) continue;
    BOOST_OUTCOME_TRY(use.entry->weights(matrix * use.columns, weights));
    // A matrix of an entry that does not count its tokens counts as much as the others.
    const auto count = static_cast<double>(std::max<std::int64_t>(1, tokens_of(use, matrix)));
    for (std::size_t i = 0; i < weights.size(); ++i) sums[i] += count * static_cast<double>(weights[i]);
    tokens += count;
  }
  std::ranges::transform(sums, weights.begin(), [&](double sum) { return static_cast<float>(sum / tokens); });
  return weights;
}

Result<Importance> importance_of(const std::string& tensor, const EntryUse& use, std::vector<float> substitute) {
  Importance importance;
  importance.name = tensor;
  importance.columns = use.columns;
  importance.matrices = use.matrices;
  if (use.has_data() || substitute.empty()) importance.shares = use.entry->described();
  if (use.has_data() && use.entry->counts.size() > 1 && use.entry->counts.size() % use.matrices == 0)
    for (std::uint64_t matrix = 0; matrix < use.matrices; ++matrix) importance.tokens.push_back(tokens_of(use, matrix));
  if (!substitute.empty()) {
    importance.substitute = std::make_shared<const std::vector<float>>(std::move(substitute));
    importance.substituted = use.rare;
  }
  BOOST_OUTCOME_TRY(importance.fingerprint,
                    fingerprint_weights(use.columns * use.matrices, [&](std::uint64_t first, std::span<float> into) {
                      if (!importance.substitute) return use.entry->weights(first, into);
                      return weights_with(importance, use.entry, first, into);
                    }));
  return importance;
}

}  // namespace ggufmill
