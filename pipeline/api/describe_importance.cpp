// The description of an importance file as JSON.

#include <algorithm>
#include <boost/json.hpp>
#include <functional>

#include "pipeline/api/merge_importance.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// The values shown for an entry, computed from its weights.
struct Shown {
  std::uint64_t columns = 0, parts = 0, unseen = 0;  // unseen: parts without any tokens
  double tokens = 0;                                 // of all parts; 0 in the legacy format, which counts chunks
  double mean = 0, max = 0;
  double top = 0;  // share of the sum held by the largest 1 % of the columns
};

Result<Shown> look_at(const ImportanceEntry& entry) {
  Shown shown;
  shown.parts = std::max<std::uint64_t>(1, entry.counts.count);
  shown.columns = entry.size() / shown.parts;
  if (entry.counts.count != 0) {
    std::vector<float> counts(entry.counts.count);
    BOOST_OUTCOME_TRY(entry.counts.read(0, counts));
    for (const float count : counts) shown.tokens += count;
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

Result<json::object> describe_importance(const std::string& path, const ModelOpener& open) {
  BOOST_OUTCOME_TRY(const ImportanceFile file, open_importance(path, open));
  json::array entries;
  for (const ImportanceEntry& entry : file.entries) {
    BOOST_OUTCOME_TRY(const Shown shown, look_at(entry));
    const bool counts_tokens = entry.counts.count != 0;
    entries.push_back(json::object{{"name", entry.name},
                                   {"columns", shown.columns},
                                   {"parts", shown.parts},
                                   {"tokens", counts_tokens ? json::value(shown.tokens) : json::value()},
                                   {"unseen", shown.unseen},
                                   {"mean", json_number(shown.mean)},
                                   {"max", json_number(shown.max)},
                                   {"top", json_number(shown.top)}});
    if (!counts_tokens) entries.back().as_object()["chunks"] = entry.calls;
  }
  return json::object{{"file", path},
                      {"datasets", json::array(file.datasets.begin(), file.datasets.end())},
                      {"chunks", file.chunks},
                      {"entries", std::move(entries)}};
}

}  // namespace ggufmill
