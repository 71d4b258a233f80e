#include "pipeline/api/measure_page.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <map>

#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"
#include "pipeline/report/pages.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// Rounds to four digits, which suffices for display and sorting.
double rounded(double figure) { return std::strtod(fmt::format("{:.3e}", figure).c_str(), nullptr); }

// {types: [names by ascending size], tensors: [[name, shape, weights, [bits per weight, relative error] or null for
// each type, and for a tensor of several matrices [relative error of each matrix] or null for each type]]}.
json::object page_data(const Measurement& measurement) {
  std::map<std::pair<double, std::string>, std::size_t> types;  // by bits per weight
  for (const MeasuredTensor& tensor : measurement.tensors)
    for (const MeasuredType& type : tensor.types) {
      const double bits = 8.0 * static_cast<double>(type.bytes) / static_cast<double>(tensor.shape.elements());
      types.try_emplace({std::round(bits * 100) / 100, type.type}, 0);
    }
  json::array names, tensors;
  for (auto& [key, place] : types) {
    place = names.size();
    names.push_back(json::string(key.second));
  }
  for (const MeasuredTensor& tensor : measurement.tensors) {
    json::array statistics(names.size()), matrices(names.size());
    const auto weights = static_cast<double>(tensor.shape.elements());
    for (const MeasuredType& type : tensor.types) {
      const double bits = 8.0 * static_cast<double>(type.bytes) / weights;
      const std::size_t place = types.at({std::round(bits * 100) / 100, type.type});
      statistics[place] = json::array{bits, std::sqrt(tensor.relative_square(type))};
      json::array errors;
      for (std::size_t m = 0; m < type.matrices.plain.size(); ++m)
        errors.push_back(rounded(std::sqrt(tensor.relative_square(type, m))));
      matrices[place] = std::move(errors);
    }
    json::array row{is_utf8(tensor.name) ? tensor.name : quoted_name(tensor.name), describe(tensor.shape),
                    tensor.shape.elements(), std::move(statistics)};
    if (!tensor.matrices.plain.empty()) row.push_back(std::move(matrices));
    tensors.push_back(std::move(row));
  }
  return {{"types", std::move(names)}, {"tensors", std::move(tensors)}};
}

}  // namespace

std::string measurement_html(const Measurement& measurement) {
  return page_with(kMeasurePage, script_text(json::serialize(page_data(measurement))));
}

}  // namespace ggufmill
