// Reads sensitivities from files: ggufmill's own format, and tables of other projects.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <sstream>

#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"
#include "pipeline/io/json_file.h"
#include "stages/quantize/objective.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMaxTableBytes = 64 << 20;
constexpr const char* kProbeAgain = "measure the sensitivities again with `ggufmill probe`";

// Splits a line into cells and strips spaces, quotes and the end of the line around each.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    std::string cell = line.substr(begin, end - begin);
    while (!cell.empty() && std::string_view(" \"\r").find(cell.back()) != std::string_view::npos) cell.pop_back();
    cell.erase(0, std::min(cell.find_first_not_of(" \""), cell.size()));
    cells.push_back(std::move(cell));
    begin = end + 1;
  }
  return cells;
}

// Parses a number, which may not be finite, with or without a percent sign. The cells of a table all have the same
// form, and only their ratios matter.
std::optional<double> number_in(std::string_view cell) {
  if (cell.ends_with('%')) cell.remove_suffix(1);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto read = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (read.ec == std::errc::invalid_argument || read.ptr != cell.data() + cell.size()) return {};
  if (read.ec == std::errc::result_out_of_range) return cell.find('-', 1) == cell.npos ? INFINITY : 0;
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
                         "the file is not a table of sensitivities: its first line has no QTYPE column, or no other",
                         "expected QTYPE,TENSOR NAME,... and a line for each type");
    type_column_ = static_cast<std::size_t>(column - names_.begin());
    while (std::getline(lines, line)) {
      ++line_;
      BOOST_OUTCOME_TRY(add(cells_of(line)));
    }
    if (file_.probes.empty())
      return input_error(path_, "the table has no divergence for a known type", "`ggufmill types` lists the types");
    return std::move(file_);
  }

 private:
  Error error(std::string what, std::string help) const {
    return input_error(fmt::format("{}:{}", path_, line_), std::move(what), std::move(help));
  }

  Status add(std::vector<std::string> cells) {
    const TypeInfo* type = cells.size() > type_column_ ? types_.find(cells[type_column_]) : nullptr;
    if (!type) return ok();
    while (cells.size() > names_.size() && cells.back().empty()) cells.pop_back();
    if (cells.size() != names_.size())
      return error(fmt::format("the line of {} has {} cells, but the first line of the table {}", type->name,
                               cells.size(), names_.size()),
                   "give each tensor of the first line a divergence; a cell may be empty");
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto divergence = i == type_column_ ? std::nullopt : number_in(cells[i]);
      if (!divergence) continue;  // not measured
      if (!std::isfinite(*divergence))
        return error(fmt::format("the divergence of tensor {} as {} is '{}', which is not a finite number",
                                 quoted_name(names_[i]), type->name, cells[i]),
                     "measure it again, or leave the cell empty if another line has a divergence of the tensor");
      const auto [known, is_new] = file_.probes.try_emplace(names_[i], Probe{});
      const TypeInfo* before = is_new ? nullptr : types_.find(known->second.type);
      if (!before || type->bits_per_weight() < before->bits_per_weight())
        known->second = {std::string(type->name), *divergence, line_};
    }
    return ok();
  }

  const std::string& path_;
  const Types& types_;
  std::vector<std::string> names_;
  std::size_t type_column_ = 0;
  std::size_t line_ = 1;  // the line that is read, from 1
  ProbeFile file_;
};

}  // namespace

Result<ProbeFile> read_probes(const std::string& path, const Types& types) {
  if (path.ends_with(".csv")) return CsvReader(path, types).read();
  BOOST_OUTCOME_TRY(const json::value root, read_json(path));
  const json::value* tensors = json_member(root, "tensors");
  if (json_string(root, "format") != "ggufmill sensitivities" || !tensors || !tensors->is_object())
    return input_error(path, "the file is not a sensitivity file", "`ggufmill probe` creates one");
  ProbeFile file;
  file.measured_on = json_string(root, "measured_on").value_or("");
  for (const auto& [name, value] : tensors->get_object()) {
    const auto type = json_string(value, "type");
    const json::value* divergence = json_member(value, "divergence");
    boost::system::error_code error;
    const double figure = divergence ? divergence->to_number<double>(error) : NAN;
    const std::string tensor = quoted_name(std::string(name));
    if (!type) return input_error(path, fmt::format("the type of tensor {} is missing", tensor), kProbeAgain);
    if (!divergence)
      return input_error(path, fmt::format("the divergence of tensor {} is missing", tensor), kProbeAgain);
    if (error || !std::isfinite(figure))
      return input_error(path,
                         fmt::format("the divergence of tensor {} is {}, which is not a finite number", tensor,
                                     written_json(*divergence)),
                         kProbeAgain);
    file.probes[std::string(name)] = {std::string(*type), figure, 0};
  }
  return file;
}

}  // namespace ggufmill
