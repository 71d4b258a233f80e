#include "pipeline/cluster/cluster_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <new>
#include <system_error>

#include "pipeline/api/reports.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/record.h"
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

// A text that may have other bytes than UTF-8.
RecordKind<std::string> shown_text() {
  return {[](const std::string& text) { return json::value(text_json(text)); }, needed_text};
}

// The same, which may refer to options.
RecordKind<std::string> message_text() {
  return {[](const std::string& text) { return json::value(text_json(with_plain_options(text))); }, needed_text};
}

const RecordForm<Error>& error_form() {
  const RecordKind<ExitCode> code{
      [](const ExitCode& it) { return json::value(static_cast<int>(it)); },
      [](const json::value& object, std::string_view name) { return exit_code_of(needed_number(object, name)); }};
  static const RecordForm<Error> form{member("code", &Error::code, code), member("where", &Error::where, shown_text()),
                                      member("what", &Error::what, message_text()),
                                      member("detail", &Error::detail, shown_text()),
                                      member("help", &Error::help, message_text())};
  return form;
}

const RecordForm<BatchCell>& cell_form() {
  using Cell = BatchCell;
  const auto state = word_kind<CellState>([](CellState it) { return name_of(it); },
                                          [](const std::string& word) -> std::optional<CellState> {
                                            for (const CellState one : kLeftOut)
                                              if (name_of(one) == word) return one;
                                            return {};
                                          },
                                          "is not a state of a skipped output");
  static const RecordForm<Cell> form{
      member("source", &Cell::source, shown_text()),
      member("output", &Cell::output, shown_text()),
      member("recipe", &Cell::recipe, shown_text()),
      member("state", &Cell::state, state),
      member("bytes", &Cell::bytes),
      member("weights", &Cell::weights),
      member("tensor_bytes", &Cell::tensor_bytes),
      member("error", &Cell::error, UsualKind<std::optional<Error>>::of(error_form().kind()))};
  return form;
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
  for (const json::value& each : needed_list(read, "skipped")) array.skipped.push_back(cell_form().read(each));
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
  for (const BatchCell& cell : array.skipped) skipped.push_back(cell_form().write(cell));
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
