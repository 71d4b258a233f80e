#pragma once
// Measurements for targets, and the file beside the pipeline file that keeps them.

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "pipeline/api/ggufmill.h"

namespace ggufmill {

// "job.measured.json" for job.yaml: where `measure` writes, and where plan, check and run look for a target that names
// no measurement.
std::string measurement_path(const Job& job);
// The same of one source of a matrix: "job.Llama-3-8B.measured.json".
std::string measurement_path(const Job& job, const std::string& source);
// The pipeline file's path with `ending` in place of its own.
std::string path_beside(const Job& job, const char* ending);

// One of so many parts of a measurement.
struct MeasuredPart {
  std::size_t part = 0, parts = 1;
};
struct MeasuringOptions {
  bool overwrite = false;  // replace what is at the path
  bool quiet = false;
  bool begins_anew = false;               // what an earlier call left is removed first
  std::optional<MeasuredPart> part = {};  // that part alone; it is left beside the path for the call that measures all
};
// Measures with progress on stderr and writes `path`. What an earlier call left that was ended early, or calls for
// parts, is gone on with.
Result<Measurement> measure_to(const Context& context, const Job& job, const std::string& path,
                               const MeasuringOptions& options);

// Adds what measurements for `path` that were ended early, or that are under way, have left.
void add_partial_measurements(const std::string& path, Leftovers& leftovers);

enum class IfUnmeasured {
  kLeave,            // the job stays as it is
  kMeasure,          // it is measured
  kMeasureNewFiles,  // it is measured where no output exists
};
// Gives the job's targets that name no measurement the one at `path`. Where that is missing, or of another source,
// importance or candidates, `if_unmeasured` says what is done. Before it measures it checks all that headers tell and
// prints how long measuring takes.
Status take_measurement(const Context& context, Job& job, const std::string& path, IfUnmeasured if_unmeasured,
                        bool quiet);

// Whether the size of the output is known: no target of it waits for a measurement.
bool is_measured(const PlannedOutput& output);
// Takes from the problems of a plan those that a measurement mends and prints them as notes.
void say_unmeasured(std::vector<Error>& problems);

}  // namespace ggufmill
