#pragma once
// Measurements in the cache and in files.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "pipeline/api/context.h"

namespace ggufmill {

// Returns the pipeline file's path with its extension replaced by `ending`.
std::string path_beside(const Job& job, const char* ending);

// Identifies one part of a measurement that is divided into `parts` parts.
struct MeasuredPart {
  std::size_t part = 0, parts = 1;
};
struct MeasuringOptions {
  std::string output{};                     // file to write; empty: none
  bool overwrite = false;                   // replace existing files
  bool starts_over = false;                 // measure everything, whatever the cache contains
  std::optional<MeasuredPart> part = {};    // measure only this part, for the call that measures everything
  const std::atomic<bool>* stop = nullptr;  // when set, ends with kInterrupted
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  // see MeasureOptions::progress
  // Called once everything is checked, before anything is measured. An error ends the measurement.
  std::function<Status(const MeasureOptions& options)> begins{};
  std::function<void(const std::string& note)> note{};  // receives what was in the cache and what was written
  std::function<void(const std::string& warning)> warn{};
};
// Measures what the cache does not contain, and writes the measurement to a file if one is given. Checks first that the
// file can be written.
Result<Measurement> measure_to(const Context& context, const Job& job, const MeasuringOptions& options);
// Writes a self-contained HTML page about a measurement: heat maps of the errors, by role and layer and by tensor and
// type. Names are escaped, whatever they contain. check_measurement_page(), to be called before the measurement is
// taken, fails with exit code 2 if the page would replace an input, the measurement, or an existing file without
// `overwrite`.
Status check_measurement_page(const Context& context, const Job& job, const std::string& measurement,
                              const std::string& page, bool overwrite);
Status write_measurement_page(const Measurement& measurement, const std::string& page, bool overwrite);

}  // namespace ggufmill
