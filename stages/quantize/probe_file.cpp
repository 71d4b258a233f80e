// Reads sensitivities from files: ggufmill's own format, and tables of other projects.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <sstream>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "stages/quantize/objective.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMaxTableBytes = 64 << 20;

// Splits a line into cells and strips spaces and quotes around each.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream parts(line);
  parts.exceptions(std::ios::badbit);  // lets std::bad_alloc through
  for (std::string cell; std::getline(parts, cell, ',');) {
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"')) cell.pop_back();
    cell.erase(0, std::min(cell.find_first_not_of(" \""), cell.size()));
    cells.push_back(std::move(cell));
  }
  return cells;
}

// Parses a number with or without a percent sign. The cells of a table all have the same form, and only their ratios
// matter.
std::optional<double> number_in(std::string_view cell) {
  if (cell.ends_with('%')) cell.remove_suffix(1);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto read = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (read.ec != std::errc() || read.ptr != cell.data() + cell.size() || !std::isfinite(value)) return {};
  return value;
}

// Reads kld_results.csv of Thireus' suite: a header line in which one column is QTYPE and the others are tensors, then
// a line for each type with the divergence of each tensor. If a tensor has several types, the type with the fewest bits
// is used, because its divergence is the clearest. Types unknown to ggml are skipped.
class CsvReader {
 public:
  CsvReader(const std::string& path, const Types& types) : path_(path), types_(types) {}

  Result<ProbeFile> read() {
    BOOST_OUTCOME_TRY(const std::string text, read_text_file(path_, kMaxTableBytes));
    std::istringstream lines(text);
    lines.exceptions(std::ios::badbit);  // lets std::bad_alloc through
    std::string line;
    std::getline(lines, line);
    names_ = cells_of(line);
    const auto column = std::ranges::find_if(names_, [](const std::string& name) { return same_word(name, "QTYPE"); });
    if (column == names_.end() || names_.size() < 2)
      return input_error(path_,
                         "is not a table of sensitivities: its first line has no QTYPE column, or no other column",
                         "expected QTYPE,TENSOR NAME,... and a line for each type");
    type_column_ = static_cast<std::size_t>(column - names_.begin());
    while (std::getline(lines, line)) add(cells_of(line));
    if (file_.probes.empty())
      return input_error(path_, "has no divergence for a known type", "`ggufmill types` lists them");
    return std::move(file_);
  }

 private:
  void add(const std::vector<std::string>& cells) {
    const TypeInfo* type = cells.size() > type_column_ ? types_.find(cells[type_column_]) : nullptr;
    if (!type) return;
    for (std::size_t i = 0; i < std::min(cells.size(), names_.size()); ++i) {
      const auto divergence = i == type_column_ ? std::nullopt : number_in(cells[i]);
      if (!divergence) continue;  // not measured
      const auto [known, is_new] = file_.probes.try_emplace(names_[i], Probe{});
      const TypeInfo* before = is_new ? nullptr : types_.find(known->second.type);
      if (!before || type->bits_per_weight() < before->bits_per_weight())
        known->second = {std::string(type->name), *divergence};
    }
  }

  const std::string& path_;
  const Types& types_;
  std::vector<std::string> names_;
  std::size_t type_column_ = 0;
  ProbeFile file_;
};

}  // namespace

Result<ProbeFile> read_probes(const std::string& path, const Types& types) {
  if (path.ends_with(".csv")) return CsvReader(path, types).read();
  BOOST_OUTCOME_TRY(const json::value root, read_json(path));
  const json::value* tensors = json_member(root, "tensors");
  if (json_string(root, "format") != "ggufmill sensitivities" || !tensors || !tensors->is_object())
    return input_error(path, "is not a sensitivity file", "`ggufmill probe` creates one");
  ProbeFile file;
  file.measured_on = json_string(root, "measured_on").value_or("");
  for (const auto& [name, value] : tensors->get_object()) {
    const auto type = json_string(value, "type");
    const json::value* divergence = json_member(value, "divergence");
    boost::system::error_code error;
    const double figure = divergence ? divergence->to_number<double>(error) : NAN;
    if (!type || error || !std::isfinite(figure))
      return input_error(path,
                         fmt::format("the type or divergence of tensor {} is missing", quoted_name(std::string(name))));
    file.probes[std::string(name)] = {std::string(*type), figure};
  }
  return file;
}

}  // namespace ggufmill
