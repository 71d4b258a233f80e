#include "pipeline/cluster/cluster_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <new>
#include <system_error>

#include "pipeline/api/reports.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "ggufmill cluster matrix";
constexpr int kVersion = 1;

// The states that an omitted output can have.
constexpr CellState kLeftOut[] = {CellState::kUnchanged, CellState::kFailed};

// File names need not be valid UTF-8, but JSON strings must be. These names appear only in messages, so quoting them is
// enough.
json::string text_json(const std::string& text) { return json::string(is_utf8(text) ? text : quoted_name(text)); }

json::value error_json(const std::optional<Error>& error) {
  if (!error) return {};
  return json::object{{"code", static_cast<int>(error->code)},
                      {"where", text_json(error->where)},
                      {"what", text_json(with_plain_options(error->what))},
                      {"detail", text_json(error->detail)},
                      {"help", text_json(with_plain_options(error->help))}};
}

std::optional<Error> error_of(const json::value& value) {
  if (value.is_null()) return {};
  return Error{exit_code_of(needed_number(value, "code")), needed_text(value, "where"), needed_text(value, "what"),
               needed_text(value, "detail"), needed_text(value, "help")};
}

json::object cell_json(const BatchCell& cell) {
  return {{"source", text_json(cell.source)},
          {"output", text_json(cell.output)},
          {"recipe", text_json(cell.recipe)},
          {"state", name_of(cell.state)},
          {"bytes", cell.bytes},
          {"weights", cell.weights},
          {"tensor_bytes", cell.tensor_bytes},
          {"error", error_json(cell.error)}};
}

BatchCell cell_of(const json::value& value) {
  BatchCell cell;
  cell.source = needed_text(value, "source");
  cell.output = needed_text(value, "output");
  cell.recipe = needed_text(value, "recipe");
  const auto state =
      std::ranges::find(kLeftOut, needed_text(value, "state"), [](CellState one) { return name_of(one); });
  if (state == std::end(kLeftOut)) throw InvalidJson{"'state' is not a state of a skipped output"};
  cell.state = *state;
  cell.bytes = needed_number(value, "bytes");
  cell.weights = needed_number(value, "weights");
  cell.tensor_bytes = needed_number(value, "tensor_bytes");
  cell.error = error_of(needed(value, "error"));
  return cell;
}

// Returns the name of a job's folder within the folder of its matrix. Rejects names that could lead out of that folder.
std::string job_folder_of(const json::value& value) {
  const std::string name = needed_text(value, "folder");
  if (!is_file_name(name)) throw InvalidJson{fmt::format("{} is not a valid name of a job folder", quoted_name(name))};
  return name;
}

Result<ClusterArray> load_matrix(const std::string& folder) try {
  ClusterArray array;
  BOOST_OUTCOME_TRY(check_trusted(folder));
  array.folder = fs::canonical(folder).string();
  array.is_matrix = true;
  const std::string path = folder + "/matrix.json";
  BOOST_OUTCOME_TRY(const json::value read, read_json(path));
  if (needed_text(read, "format") != kFormat || needed_number(read, "version") != kVersion)
    return input_error(path, "not a matrix of cluster jobs of this version");
  std::size_t parts = 0;
  for (const json::value& each : needed_list(read, "jobs")) {
    const std::string name = job_folder_of(each);
    if (!is_job_folder(array.file(name))) throw InvalidJson{fmt::format("there is no job in {}", quoted_name(name))};
    BOOST_OUTCOME_TRY(ClusterJob job, load_job_folder(array.file(name)));
    job.source = needed_text(each, "source");
    job.first_part = parts;
    job.array_folder = array.folder;
    parts += job.parts();
    array.jobs.push_back(std::move(job));
  }
  if (array.jobs.empty()) throw InvalidJson{"it has no jobs"};
  for (const json::value& each : needed_list(read, "skipped")) array.skipped.push_back(cell_of(each));
  array.report.json = needed_text(needed(read, "report"), "json");
  array.report.html = needed_text(needed(read, "report"), "html");
  return array;
} catch (const InvalidJson& error) {
  return input_error(folder + "/matrix.json", "not a valid matrix: " + error.what, "submit it again");
} catch (const fs::filesystem_error& error) {
  if (error.code() == std::errc::not_enough_memory) throw std::bad_alloc();
  return input_error(folder + "/matrix.json", fmt::format("cannot read it: {}", error.what()), "submit it again");
}

bool is_matrix_folder(const fs::path& path) { return is_file(path / "matrix.json"); }

}  // namespace

ClusterArray::Place ClusterArray::place_of(std::size_t part) const {
  const auto after = std::ranges::upper_bound(jobs, part, {}, &ClusterJob::first_part);
  const auto job = static_cast<std::size_t>(after - jobs.begin()) - 1;
  return {job, part - jobs[job].first_part};
}

ClusterArray array_of(ClusterJob job) {
  ClusterArray array;
  array.folder = job.folder;
  array.jobs.push_back(std::move(job));
  return array;
}

Status write_matrix(const ClusterArray& array) {
  json::array jobs, skipped;
  for (const ClusterJob& job : array.jobs)
    jobs.push_back(
        json::object{{"folder", fs::path(job.folder).filename().string()}, {"source", text_json(job.source)}});
  for (const BatchCell& cell : array.skipped) skipped.push_back(cell_json(cell));
  const json::object object{{"format", kFormat},
                            {"version", kVersion},
                            {"ggufmill", GGUFMILL_VERSION},
                            {"jobs", std::move(jobs)},
                            {"skipped", std::move(skipped)},
                            {"report", json::object{{"json", array.report.json}, {"html", array.report.html}}}};
  return write_own_text(array.file("matrix.json"), json::serialize(object) + "\n", false);
}

bool is_array_folder(const std::string& path) { return is_job_folder(path) || is_matrix_folder(path); }

Result<ClusterArray> load_array(const std::string& folder) {
  if (is_matrix_folder(folder)) return load_matrix(folder);
  BOOST_OUTCOME_TRY(ClusterJob job, load_job_folder(folder));
  if (const fs::path above = fs::path(job.folder).parent_path(); is_matrix_folder(above))
    return usage_error(fmt::format("{} is one of the jobs of a matrix", quoted_name(folder)),
                       fmt::format("give the folder of the matrix: {}", above.string()));
  return array_of(std::move(job));
}

}  // namespace ggufmill
