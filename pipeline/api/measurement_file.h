#pragma once
// Measurements in files: where they are stored, and the journals that let a later call resume.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "pipeline/api/context.h"

namespace ggufmill {

// Returns the default path of a job's measurement, for example "job.measured.json" for job.yaml. `measure` writes it;
// plan, check and run read it for targets that name no measurement.
std::string measurement_path(const Job& job);
// Returns the default path for one source of a matrix, for example "job.Llama-3-8B.measured.json".
std::string measurement_path(const Job& job, const std::string& source);
// Returns the pipeline file's path with its extension replaced by `ending`.
std::string path_beside(const Job& job, const char* ending);

// Identifies one part of a measurement that is divided into `parts` parts.
struct MeasuredPart {
  std::size_t part = 0, parts = 1;
};
struct MeasuringOptions {
  bool overwrite = false;                   // replace existing files
  bool starts_over = false;                 // first remove the files of earlier calls
  std::optional<MeasuredPart> part = {};    // measure only this part and keep it for the call that measures everything
  const std::atomic<bool>* stop = nullptr;  // when set, ends with kInterrupted
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  // see MeasureOptions::progress
  std::function<void(const std::string& note)> note{};                      // receives what was resumed and written
  std::function<void(const std::string& warning)> warn{};
};
// Measures and writes `path`. Resumes an earlier interrupted measurement and reuses parts measured separately.
Result<Measurement> measure_to(const Context& context, const Job& job, const std::string& path,
                               const MeasuringOptions& options);
// Writes a page about a measurement. check_measurement_page(), to be called before the measurement is taken, fails with
// exit code 2 if the page would replace an input, the measurement, or an existing file without `overwrite`.
Status check_measurement_page(const Context& context, const Job& job, const std::string& measurement,
                              const std::string& page, bool overwrite);
Status write_measurement_page(const Measurement& measurement, const std::string& page, bool overwrite);

// Adds the journals that interrupted or running measurements for `path` have left.
void add_partial_measurements(const std::string& path, Leftovers& leftovers);

}  // namespace ggufmill
