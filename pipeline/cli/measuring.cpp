#include "pipeline/cli/measuring.h"

#include <fmt/format.h>

#include <filesystem>

#include "pipeline/api/reports.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/config/matrix.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {

std::string path_beside(const Job& job, const char* ending) {
  std::filesystem::path path = job.file;
  return path.replace_extension(ending);
}

std::string measurement_path(const Job& job) { return path_beside(job, ".measured.json"); }

std::string measurement_path(const Job& job, const std::string& source) {
  return path_beside(job, ("." + source_name(source) + ".measured.json").c_str());
}

Result<Measurement> measure_to(const Context& context, const Job& job, const std::string& path, bool quiet) {
  ProgressMeter meter(quiet);
  MeasureOptions options;
  options.run.stop = catch_signals();
  options.progress = [&](std::uint64_t done, std::uint64_t total) { meter.show("measuring", done, total); };
  auto measured = context.measure(job, options);
  meter.finish();
  if (!measured) return measured.error();
  BOOST_OUTCOME_TRY(write_text(path, write_measurement(measured.value()), true));
  if (!quiet) say_note(fmt::format("wrote {}  what each type costs each tensor", path));
  return measured;
}

Status take_measurement(const Context& context, Job& job, const std::string& path, bool measures, bool quiet) {
  if (!needs_measurement(job)) return ok();
  if (is_file(path)) {
    auto read = read_measurement(path);
    if (!read && !measures) return read.error();
    if (read) {
      Job with = job;
      give_measurement(with, std::make_shared<const Measurement>(std::move(read).value()));
      if (!measures || context.plan(with)) {
        job = std::move(with);
        return ok();
      }
    }
  }
  if (!measures) return ok();
  if (!quiet) say_note(fmt::format("{}: there is a target and no measurement of it: measuring first", job.file));
  BOOST_OUTCOME_TRY(Measurement measured, measure_to(context, job, path, quiet));
  give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  return ok();
}

}  // namespace ggufmill
