#include "stages/prune/layer_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number) != std::from_chars_result{end, std::errc()}) return {};
  return number;
}

}  // namespace

Result<LayerSet::Range> LayerSet::parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number(trimmed(text.substr(0, dash)));
  const auto last = dash == text.npos ? first : parse_number(trimmed(text.substr(dash + 1)));
  if (!first || !last) return usage_error(fmt::format("{} is neither a layer number nor a range", quoted_name(text)));
  if (*first > *last) return usage_error(fmt::format("range {} ends before it starts", quoted_name(text)));
  if (*last >= kMaxLayers) return usage_error(fmt::format("no model has a layer {}", *last));
  return Range{*first, *last + 1};
}

Status LayerSet::add(std::string_view text) {
  std::vector<Range> ranges = ranges_;
  while (true) {
    const std::size_t comma = text.find(',');
    BOOST_OUTCOME_TRY(ranges.emplace_back(), parse_range(trimmed(text.substr(0, comma))));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  merge(std::move(ranges));
  return ok();
}

void LayerSet::merge(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  ranges_.clear();
  for (const Range& range : ranges) {
    if (!ranges_.empty() && range.begin <= ranges_.back().end)
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    else
      ranges_.push_back(range);
  }
}

std::uint64_t LayerSet::count(std::uint64_t begin, std::uint64_t end) const {
  std::uint64_t layers = 0;
  for (const Range& range : ranges_) {
    const std::uint64_t first = std::max(begin, range.begin);
    const std::uint64_t past = std::min(end, range.end);
    if (first < past) layers += past - first;
  }
  return layers;
}

}  // namespace ggufmill
