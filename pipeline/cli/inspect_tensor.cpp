#include "pipeline/cli/inspect_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <span>

#include "pipeline/api/describe.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/signals.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
namespace po = boost::program_options;

constexpr std::size_t kBins = 24, kBarWidth = 40, kShownColumns = 8;

// Parses "FIRST:COUNT".
Result<std::pair<std::uint64_t, std::uint64_t>> read_range(const std::string& text) {
  std::pair<std::uint64_t, std::uint64_t> range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == ':') {
    const auto count = std::from_chars(first.ptr + 1, end, range.second);
    if (count.ec == std::errc() && count.ptr == end && range.second <= UINT64_MAX - range.first) return range;
  }
  return usage_error(fmt::format("--rows must be FIRST:COUNT, not {}", quoted_name(text)), "for example --rows 0:4");
}

int show_values(const Context& context, const Tensor& tensor, JsonList* list, const po::variables_map& values) {
  const auto range = read_range(values["rows"].as<std::string>());
  if (!range) return fail(range.error());
  auto [first, rows] = range.value();
  if (values["rows"].defaulted()) rows = std::min(rows, tensor.shape().rows());
  const auto read = tensor_values(context, tensor, first, rows);
  if (!read) return fail(read.error());
  const std::uint64_t columns = tensor.shape().columns();
  json::array lines;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto line = std::span(read.value()).subspan(row * columns, columns);
    if (list) {
      json::array numbers;
      for (const float value : line) numbers.push_back(json_number(value));
      lines.push_back(std::move(numbers));
      continue;
    }
    std::string text = fmt::format("{:>8} ", first + row);
    for (const float value : line.first(std::min<std::size_t>(kShownColumns, columns)))
      text += fmt::format(" {:>8.3g}", value);
    fmt::print("{}{}\n", text, columns > kShownColumns ? " ..." : "");
  }
  if (list)
    list->add(to_json_text(json::object{{"tensor", tensor.name}, {"first", first}, {"values", std::move(lines)}}));
  return 0;
}

int show_statistics(const Context& context, const Tensor& tensor, JsonList* list) {
  const auto found = tensor_statistics(context, tensor, kBins, catch_signals());
  if (!found) {
    const int code = fail(found.error());
    return signal_exit_code().value_or(code);
  }
  const TensorStatistics& it = found.value();
  if (list) {
    list->add(to_json_text(describe_statistics(tensor, it)));
    return 0;
  }
  fmt::print("{}  {}  {}\n", printable(tensor.name), describe(tensor.shape()), tensor.type->name);
  fmt::print("{} values, {} zero, {} not finite\n", with_commas(it.count), with_commas(it.zeros),
             with_commas(it.not_finite));
  fmt::print("{:.6g} to {:.6g}, mean {:.4g}, standard deviation {:.4g}\n", it.least, it.largest, it.mean, it.deviation);
  const std::uint64_t most = *std::ranges::max_element(it.histogram);
  for (std::size_t bin = 0; most != 0 && bin < kBins; ++bin) {
    const double from = it.least + (it.largest - it.least) * static_cast<double>(bin) / kBins;
    const auto width =
        static_cast<std::size_t>(static_cast<double>(it.histogram[bin]) * kBarWidth / static_cast<double>(most));
    fmt::print("{:>11.4g}  {:<{}}  {}\n", from, std::string(width, '#'), kBarWidth, with_commas(it.histogram[bin]));
  }
  return 0;
}

}  // namespace

int show_tensor(const Context& context, const Model& model, JsonList* list, const po::variables_map& values) {
  const auto name = values["tensor"].as<std::string>();
  std::vector<std::string> names;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.name == name)
      return values.count("values") ? show_values(context, tensor, list, values)
                                    : show_statistics(context, tensor, list);
    names.push_back(tensor.name);
  }
  const std::string meant = did_you_mean(name, names);
  return fail(usage_error(
      fmt::format("the model has no tensor {}", quoted_name(name)),
      meant.empty() ? "`ggufmill inspect` without --tensor lists them" : fmt::format("did you mean '{}'?", meant)));
}

}  // namespace ggufmill
