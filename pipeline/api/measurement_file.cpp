#include "pipeline/api/measurement_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <map>

#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/report/json_text.h"
#include "pipeline/report/pages.h"

namespace ggufmill {

std::string path_beside(const Job& job, const char* ending) {
  fs::path path = job.file;
  return path.replace_extension(ending);
}

namespace {

// Returns the standard error of sampled tensors' losses, as a share of the loss; an empty text if nothing was sampled.
std::string describe_precision(const Measurement& measurement) {
  double sum = 0, largest = 0;
  std::size_t numbers = 0;
  for (const MeasuredTensor& tensor : measurement.tensors)
    for (const MeasuredType& type : tensor.types) {
      const double loss = tensor.relative_square(type);
      if (tensor.rows == 0 || loss == 0) continue;
      const double share = tensor.standard_error(type) / loss;
      sum += share;
      largest = std::max(largest, share);
      ++numbers;
    }
  if (numbers == 0) return {};
  return fmt::format(", from a sample: standard error {:.2g} % on average, {:.2g} % at most",
                     100 * sum / static_cast<double>(numbers), 100 * largest);
}

}  // namespace

Result<Measurement> measure_to(const Context& context, const Job& job, const MeasuringOptions& how) {
  const auto note = [&](const std::string& text) {
    if (how.note) how.note(text);
  };
  MeasureOptions options;
  options.starts_over = how.starts_over;
  if (how.part) {
    options.part = how.part->part;
    options.parts = how.part->parts;
  }
  if (!how.output.empty()) {
    BOOST_OUTCOME_TRY(const std::vector<std::string> read, context.inputs(job));
    BOOST_OUTCOME_TRY(context.check_written({how.output, "measurement"}, read, how.overwrite));
  }
  options.known = [&](std::size_t known, std::size_t all) {
    note(fmt::format("{}: {} of {} tensors are already measured", job.file, known, all));
  };
  options.warn = how.warn;
  options.run.stop = how.stop;
  options.progress = how.progress;
  if (how.begins) {
    BOOST_OUTCOME_TRY(how.begins(options));
  }
  auto measured = context.measure(job, options);
  if (!measured) {
    Error error = measured.error();
    options.starts_over = false;
    if (error.code == ExitCode::kInterrupted && !options.cache.empty())
      if (const auto kept = context.recall(job, options))
        error.detail =
            fmt::format("{} of {} are measured and kept in the cache: measure again{} to resume", kept.value().known,
                        counted(kept.value().tensors, "tensor"), how.starts_over ? " without --no-resume" : "");
    return error;
  }
  const Measurement& result = measured.value();
  const std::string precision = describe_precision(result);
  if (how.part)
    note(fmt::format("{}: measured part {} of {}: {}{}", job.file, how.part->part, how.part->parts,
                     counted(result.tensors.size(), "tensor"), precision));
  else if (how.output.empty())
    note(fmt::format("{}: measured {}{}", job.file, counted(result.tensors.size(), "tensor"), precision));
  if (how.output.empty()) return measured;
  BOOST_OUTCOME_TRY(write_text(how.output, write_measurement(result), how.overwrite));
  note(fmt::format("wrote {}  cost of each type for each tensor{}", how.output, precision));
  return measured;
}

Status check_measurement_page(const Context& context, const Job& job, const std::string& measurement,
                              const std::string& page, bool overwrite) {
  BOOST_OUTCOME_TRY(std::vector<std::string> read, context.inputs(job));
  if (!measurement.empty()) {
    const WrittenPath written[] = {{measurement, "measurement"}, {page, "page"}};
    Diagnostics errors;
    check_distinct(written, {}, errors);
    if (!errors.empty()) return errors.together();
  }
  return context.check_written({page, "page"}, std::move(read), overwrite);
}

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

Status write_measurement_page(const Measurement& measurement, const std::string& page, bool overwrite) {
  const std::string data = script_text(json::serialize(page_data(measurement)));
  return write_text(page, page_with(kMeasurePage, data), overwrite);
}

}  // namespace ggufmill
