#include "stages/importance/activation_statistics.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace ggufmill {
namespace {

constexpr std::size_t kPiece = 64 * 1024;  // numbers read at a time

// A range of the sums of an entry.
struct Piece {
  std::uint64_t first = 0;
  std::vector<float> squares;      // sums
  std::vector<float> activations;  // sums; empty if the entry has none
};

// Calls use(piece) for the sums of an entry, in order.
template <class Use>
Status for_each_piece(const MergedEntry& entry, bool with_activations, const Use& use) {
  Piece piece;
  for (; piece.first < entry.size(); piece.first += piece.squares.size()) {
    piece.squares.resize(std::min<std::uint64_t>(kPiece, entry.size() - piece.first));
    BOOST_OUTCOME_TRY(entry.sums(piece.first, piece.squares));
    if (with_activations) {
      piece.activations.resize(piece.squares.size());
      BOOST_OUTCOME_TRY(entry.activations(piece.first, piece.activations));
    }
    use(piece);
  }
  return ok();
}

// The mean square and mean activation of a column.
struct Column {
  double square, value;
};

// Calls use(column) for every column of the parts that saw tokens, if its numbers are finite.
template <class Use>
Status for_each_column(const MergedEntry& entry, const Use& use) {
  const bool has_activations = entry.has_activations();
  const std::uint64_t row = entry.size() / entry.counts.size();
  return for_each_piece(entry, has_activations, [&](const Piece& piece) {
    for (std::size_t i = 0; i < piece.squares.size(); ++i) {
      const auto count = static_cast<float>(entry.counts[(piece.first + i) / row]);
      if (count <= 0) continue;
      const double inverse = 1 / static_cast<double>(count);
      const double square = static_cast<double>(piece.squares[i]) * inverse;
      const double value = has_activations ? static_cast<double>(piece.activations[i]) * inverse : square;
      if (std::isfinite(value) && std::isfinite(square)) use(Column{square, value});
    }
  });
}

// Computes the statistics that describe the columns of an entry.
Status describe_columns(const MergedEntry& entry, ActivationStatistics& out) {
  double mean = 0, energy = 0;
  BOOST_OUTCOME_TRY(for_each_column(entry, [&](const Column& column) {
    out.sum_sq += column.square;
    out.elements += 1;
    mean += (column.value - mean) / out.elements;
    if (column.square > 0) energy += column.square;
  }));
  if (out.elements == 0) return ok();
  const double inverse_energy = energy > 0 ? 1 / energy : 0;
  const double bits = 1 / std::log(2.0);
  double entropy = 0, second = 0, third = 0, fourth = 0;
  BOOST_OUTCOME_TRY(for_each_column(entry, [&](const Column& column) {
    const double off = column.value - mean;
    second += off * off;
    third += off * off * off;
    fourth += off * off * off * off;
    const double share = std::max(0.0, column.square) * inverse_energy;
    if (share > 1e-10) entropy -= share * std::log(share) * bits;
  }));
  const double variance = out.elements > 1 ? second / out.elements : 0;
  out.mean = static_cast<float>(mean);
  out.deviation = std::sqrt(static_cast<float>(std::max(variance, 0.0)));
  if (out.deviation > 1e-10f) {
    const double moment = second / out.elements;
    out.skewness = static_cast<float>(third / out.elements / (moment * std::sqrt(moment)));
    out.kurtosis = static_cast<float>(fourth / out.elements / (moment * moment) - 3);
  }
  out.entropy = static_cast<float>(entropy);
  return ok();
}

// The numbers of a piece divided by their counts, in single precision; NaN for parts that saw no tokens.
void average(const MergedEntry& entry, std::uint64_t first, std::span<float> numbers) {
  const std::uint64_t row = entry.size() / entry.counts.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto count = static_cast<float>(entry.counts[(first + i) / row]);
    numbers[i] = count > 0 ? numbers[i] * (1.0f / count) : ActivationStatistics::kNone;
  }
}

// Calls use(x, y) for the columns of two entries of equal size, if both averages are finite.
template <class Use>
Status for_each_pair(const MergedEntry& entry, const MergedEntry& earlier, const Use& use) {
  const bool by_value = entry.has_activations() && earlier.has_activations();
  std::vector<float> x, y;
  for (std::uint64_t first = 0; first < entry.size(); first += x.size()) {
    x.resize(std::min<std::uint64_t>(kPiece, entry.size() - first));
    y.resize(x.size());
    BOOST_OUTCOME_TRY(by_value ? entry.activations(first, x) : entry.sums(first, x));
    BOOST_OUTCOME_TRY(by_value ? earlier.activations(first, y) : earlier.sums(first, y));
    average(entry, first, x);
    average(earlier, first, y);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (std::isfinite(x[i]) && std::isfinite(y[i])) use(static_cast<double>(x[i]), static_cast<double>(y[i]));
  }
  return ok();
}

// Returns a cosine in [-1, 1]; NaN if both are zero vectors, and 0 if one is.
float cosine_of(double product, double square_x, double square_y) {
  if (square_x > 0 && square_y > 0)
    return std::clamp(static_cast<float>(product / (std::sqrt(square_x) * std::sqrt(square_y))), -1.0f, 1.0f);
  return square_x == 0 && square_y == 0 ? ActivationStatistics::kNone : 0;
}

// Computes the statistics that compare an entry with one of an earlier layer.
Status compare_columns(const MergedEntry& entry, const MergedEntry& earlier, const ActivationStatistics& before,
                       ActivationStatistics& out) {
  if (entry.size() != earlier.size()) return ok();
  double sum_x = 0, sum_y = 0, count = 0;
  BOOST_OUTCOME_TRY(for_each_pair(entry, earlier, [&](double x, double y) {
    sum_x += x;
    sum_y += y;
    count += 1;
  }));
  if (count == 0) return ok();
  const double mean_x = sum_x / count, mean_y = sum_y / count;
  double xy = 0, xx = 0, yy = 0, distance = 0, covariance = 0, variance_x = 0, variance_y = 0;
  BOOST_OUTCOME_TRY(for_each_pair(entry, earlier, [&](double x, double y) {
    xy += x * y;
    xx += x * x;
    yy += y * y;
    distance += (x - y) * (x - y);
    const double off_x = x - mean_x, off_y = y - mean_y;
    covariance += off_x * off_y;
    variance_x += off_x * off_x;
    variance_y += off_y * off_y;
  }));
  out.distance = static_cast<float>(std::sqrt(distance));
  if (count > 1) out.covariance = static_cast<float>(covariance / count);
  out.cosine = cosine_of(xy, xx, yy);
  out.pearson = cosine_of(covariance, variance_x, variance_y);
  if (before.sum_sq > 1e-10f)
    out.gain = static_cast<float>(std::sqrt(out.sum_sq / out.elements) / std::sqrt(before.sum_sq / before.elements));
  else
    out.gain = out.sum_sq <= 1e-10f ? 1 : ActivationStatistics::kNone;
  return ok();
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t dot = name.find('.');
    words.push_back(name.substr(0, dot));
    if (dot == name.npos) return words;
    name.remove_prefix(dot + 1);
  }
}

// The layer in a tensor name, "blk.LAYER." anywhere in it, with the text before and after the number.
struct Place {
  int layer;
  std::string_view before, after;

  // The place of the same tensor in any layer.
  std::pair<std::string_view, std::string_view> role() const { return {before, after}; }
};

std::optional<Place> place_of(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  const auto block = std::ranges::find(words, "blk");
  if (block == words.end() || block + 1 == words.end()) return {};
  const std::string_view number = block[1];
  int layer = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
  if (error != std::errc() || end != number.data() + number.size()) return {};
  const auto at = static_cast<std::size_t>(number.data() - name.data());
  return Place{layer, name.substr(0, at), name.substr(at + number.size())};
}

// Returns true for a tensor of a layer that predicts further tokens: "blk.N.nextn.ANYTHING.weight".
bool is_of_prediction(const Place& place) {
  const std::vector<std::string_view> words =
      words_of(place.after.substr(std::min<std::size_t>(1, place.after.size())));
  return place.before == "blk." && words.size() >= 3 && words[0] == "nextn" && words[1] != "weight" &&
         std::ranges::count(words, "weight") > 0;
}

// Returns the first layer that predicts further tokens; INT_MAX if there is none.
int first_prediction(const std::vector<std::optional<Place>>& places, std::uint32_t prediction_layers) {
  int first = INT_MAX, last = -1;
  for (const std::optional<Place>& place : places) {
    if (!place) continue;
    last = std::max(last, place->layer);
    if (is_of_prediction(*place)) first = std::min(first, place->layer);
  }
  if (prediction_layers == 0 || last < 0) return first;
  return static_cast<int>(std::max<std::int64_t>(0, std::int64_t{last} + 1 - std::int64_t{prediction_layers}));
}

}  // namespace

std::array<float, std::size(kActivationStatistics)> ActivationStatistics::stored() const {
  if (elements == 0) return {};
  const auto count = static_cast<float>(elements);
  const float share_of_entropy = elements > 1 ? 100.0f * (entropy / std::log2(count)) : kNone;
  return {static_cast<float>(sum_sq), mean,     count,  deviation, skewness,  kurtosis, gain,
          share_of_entropy,           distance, cosine, pearson,   covariance};
}

Result<std::vector<ActivationStatistics>> activation_statistics(const MergedImportance& merged) {
  const std::vector<MergedEntry>& entries = merged.entries;
  std::vector<ActivationStatistics> all(entries.size());
  std::vector<std::optional<Place>> places(entries.size());
  std::map<std::pair<std::string_view, std::string_view>, std::map<int, std::size_t>> layers;  // by role
  for (std::size_t i = 0; i < entries.size(); ++i) {
    BOOST_OUTCOME_TRY(describe_columns(entries[i], all[i]));
    if (all[i].elements == 0) continue;
    places[i] = place_of(entries[i].name);
    if (places[i]) layers[places[i]->role()].emplace(places[i]->layer, i);
  }
  const int predicts = first_prediction(places, merged.prediction_layers);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::optional<Place>& place = places[i];
    if (!place || place->layer <= 0 || place->layer == predicts) continue;
    const std::map<int, std::size_t>& same = layers[place->role()];
    const auto own = same.find(place->layer);
    if (own == same.begin()) continue;
    const auto [layer, earlier] = *std::prev(own);
    if (layer < (place->layer > predicts ? predicts : 0)) continue;
    BOOST_OUTCOME_TRY(compare_columns(entries[i], entries[earlier], all[earlier], all[i]));
  }
  return all;
}

}  // namespace ggufmill
