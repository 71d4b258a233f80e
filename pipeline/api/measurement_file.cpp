#include "pipeline/api/measurement_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "pipeline/api/measure_page.h"
#include "pipeline/api/reports.h"
#include "pipeline/config/matrix.h"
#include "pipeline/core/folder.h"
#include "pipeline/io/own_file.h"
#include "pipeline/journal/leftovers.h"

namespace ggufmill {

namespace fs = std::filesystem;

std::string path_beside(const Job& job, const char* ending) {
  fs::path path = job.file;
  return path.replace_extension(ending);
}

std::string measurement_path(const Job& job) { return path_beside(job, ".measured.json"); }

std::string measurement_path(const Job& job, const std::string& source) {
  return path_beside(job, ("." + source_name(source) + ".measured.json").c_str());
}

namespace {

constexpr std::string_view kJournal = ".partial";

// Returns true if the text is the name of a part, for example "3-of-16".
bool is_part(std::string_view text) {
  constexpr std::string_view kOf = "-of-";
  const std::size_t of = text.find(kOf);
  const auto is_number = [](std::string_view digits) {
    return !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  };
  return of != text.npos && is_number(text.substr(0, of)) && is_number(text.substr(of + kOf.size()));
}

// Returns the journals of the parts of the measurement `path`.
std::vector<std::string> journals_of_parts(const std::string& path) {
  const fs::path whole(path);
  const std::string begin = whole.filename().string() + ".", own = whole.filename().string() + std::string(kJournal);
  std::vector<std::string> found;
  int unreadable = 0;
  for (const std::string& name :
       names_in_folder(whole.has_parent_path() ? whole.parent_path().string() : ".", unreadable))
    if (name.starts_with(begin) && name.ends_with(kJournal) && name != own &&
        is_part(name.substr(begin.size(), name.size() - begin.size() - kJournal.size())))
      found.push_back((whole.parent_path() / name).string());
  return found;
}

// Returns true if the file belongs only to this user. Other files are never removed.
bool is_own(const std::string& path) {
  const auto there = open_own(AT_FDCWD, path, O_RDONLY, path);
  return there && there.value().file;
}

void remove_all(const std::vector<std::string>& paths) {
  std::error_code ignored;
  for (const std::string& path : paths)
    if (is_own(path)) fs::remove(path, ignored);
}

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

Result<Measurement> measure_to(const Context& context, const Job& job, const std::string& path,
                               const MeasuringOptions& how) {
  const std::optional<MeasuredPart>& part = how.part;
  const auto note = [&](const std::string& text) {
    if (how.note) how.note(text);
  };
  MeasureOptions options;
  options.journal = path + std::string(kJournal);
  if (part) {
    options.part = part->part;
    options.parts = part->parts;
    options.journal = fmt::format("{}.{}-of-{}{}", path, part->part, part->parts, kJournal);
  } else {
    options.other_journals = journals_of_parts(path);
  }
  std::vector<std::string> journals = options.other_journals;
  journals.push_back(options.journal);
  BOOST_OUTCOME_TRY(const std::vector<std::string> read, context.inputs(job));
  if (!part) {
    BOOST_OUTCOME_TRY(context.check_written({path, "measurement"}, read, how.overwrite));
  }
  BOOST_OUTCOME_TRY(context.check_written({options.journal, "journal"}, read, true));
  if (how.starts_over) {
    remove_all(journals);
    options.other_journals.clear();
  }
  options.goes_on = [&](std::size_t known, std::size_t all) {
    note(fmt::format("{}: {} of {} tensors are already measured", path, known, all));
  };
  options.warn = how.warn;
  options.run.stop = how.stop;
  options.progress = how.progress;
  auto measured = context.measure(job, options);
  std::error_code ignored;
  if (!measured) {
    Error error = measured.error();
    const bool is_empty = fs::is_empty(options.journal, ignored);
    if (is_empty && error.code != ExitCode::kTransient)
      remove_all({options.journal});  // otherwise another process uses it
    if (!is_empty && !ignored && error.code == ExitCode::kInterrupted)
      error.detail =
          fmt::format("the results so far are in {}: run the measurement again to resume it", options.journal);
    return error;
  }
  if (part) {
    note(fmt::format("wrote {}  part {} of {}", options.journal, part->part, part->parts));
    return measured;
  }
  BOOST_OUTCOME_TRY(write_text(path, write_measurement(measured.value()), how.overwrite));
  remove_all(journals);
  note(fmt::format("wrote {}  cost of each type for each tensor{}", path, describe_precision(measured.value())));
  return measured;
}

void add_partial_measurements(const std::string& path, Leftovers& leftovers) {
  std::vector<std::string> journals = journals_of_parts(path);
  journals.push_back(path + std::string(kJournal));
  for (const std::string& journal : journals) {
    std::error_code error;
    if (!is_own(journal)) continue;
    Leftover& file = leftovers.files.emplace_back();
    file.path = journal;
    file.output = path;
    file.bytes = fs::file_size(journal, error);
    file.of_this_plan = true;
    file.is_in_use = is_locked(journal);
  }
}

Status check_measurement_page(const Context& context, const Job& job, const std::string& measurement,
                              const std::string& page, bool overwrite) {
  BOOST_OUTCOME_TRY(std::vector<std::string> read, context.inputs(job));
  read.push_back(measurement);
  return context.check_written({page, "page"}, std::move(read), overwrite);
}

Status write_measurement_page(const Measurement& measurement, const std::string& page, bool overwrite) {
  return write_text(page, measurement_html(measurement), overwrite);
}

}  // namespace ggufmill
