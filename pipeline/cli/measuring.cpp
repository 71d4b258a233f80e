#include "pipeline/cli/measuring.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "pipeline/api/reports.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cluster/cut.h"
#include "pipeline/config/matrix.h"
#include "pipeline/core/folder.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/source_path.h"
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

}  // namespace

Result<Measurement> measure_to(const Context& context, const Job& job, const std::string& path,
                               const MeasuringOptions& how) {
  const bool quiet = how.quiet;
  const std::optional<MeasuredPart>& part = how.part;
  ProgressMeter meter(quiet);
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
  if (how.begins_anew) {
    remove_all(journals);
    options.other_journals.clear();
  }
  options.goes_on = [&](std::size_t known, std::size_t all) {
    if (!quiet) say_note(fmt::format("{}: {} of {} tensors are already measured", path, known, all));
  };
  options.warn = say_warning;
  options.run.stop = catch_signals();
  options.progress = [&](std::uint64_t done, std::uint64_t total) { meter.show("measuring", done, total); };
  auto measured = context.measure(job, options);
  meter.finish();
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
    if (!quiet) say_note(fmt::format("wrote {}  part {} of {}", options.journal, part->part, part->parts));
    return measured;
  }
  BOOST_OUTCOME_TRY(write_text(path, write_measurement(measured.value()), how.overwrite));
  remove_all(journals);
  if (!quiet) say_note(fmt::format("wrote {}  cost of each type for each tensor", path));
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

namespace {

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", std::ceil(seconds));
  return seconds < 3600 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

Status say_estimate(const Context& context, const Job& job) {
  BOOST_OUTCOME_TRY(const Plan plan, context.plan_measurement(job));
  ImaginedMachine machine;
  machine.isa = context.kernels().isa();
  machine.threads = threads_for(job.limits.threads);
  const std::vector<double> costs = unit_costs(plan, machine);
  std::size_t types = 0;
  for (const Step& step : plan.steps) types = std::max(types, step.encodings.size());
  say_note(
      fmt::format("{}: the target is not measured yet; measuring it first: {} tensors as up to {} types each, {} to "
                  "read, takes about {}",
                  job.file, plan.steps.size(), types, human_bytes(plan.bytes_read()),
                  duration_text(std::accumulate(costs.begin(), costs.end(), 0.0))));
  return ok();
}

}  // namespace

Status take_measurement(const Context& context, Job& job, const std::string& path, IfUnmeasured if_unmeasured,
                        bool quiet) {
  if (!needs_measurement(job)) return ok();
  const bool measures = if_unmeasured != IfUnmeasured::kLeave;
  bool is_old_measurement = false;  // a measurement that `run` made for itself and may replace
  if (is_file(path)) {
    auto read = read_measurement(path);
    if (!read && !measures) return read.error();
    if (read) {
      Job with = job;
      give_measurement(with, std::make_shared<const Measurement>(std::move(read).value()));
      if (const auto plan = context.plan(with); plan || !wants_measurement(plan.error())) {
        job = std::move(with);
        job.inputs.push_back(path);
        return ok();
      }
    }
    is_old_measurement = is_measurement(path);
  }
  if (!measures) return ok();
  BOOST_OUTCOME_TRY(check_unmeasured(context, job, if_unmeasured == IfUnmeasured::kMeasure));
  if (!quiet) {
    BOOST_OUTCOME_TRY(say_estimate(context, job));
  }
  BOOST_OUTCOME_TRY(Measurement measured,
                    measure_to(context, job, path, {.overwrite = is_old_measurement, .quiet = quiet}));
  give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  return ok();
}

bool is_measured(const PlannedOutput& output) { return std::ranges::none_of(output.problems, wants_measurement); }

void say_unmeasured(std::vector<Error>& problems) {
  for (const Error& problem : problems)
    if (wants_measurement(problem)) say_note(fmt::format("{}: {}; {}", problem.where, problem.what, problem.help));
  std::erase_if(problems, wants_measurement);
}

}  // namespace ggufmill
