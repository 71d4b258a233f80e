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
// Measures with progress on stderr and writes `path`, which is replaced. What an earlier call left that was ended
// early, or calls for parts, is gone on with; `begins_anew`: it is removed first. With `part` only a part is measured,
// and left beside `path` for the call that measures the whole.
Result<Measurement> measure_to(const Context& context, const Job& job, const std::string& path, bool quiet,
                               bool begins_anew = false, std::optional<MeasuredPart> part = {});

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

// Takes from the problems of a plan those that a measurement mends and prints them as notes.
void say_unmeasured(std::vector<Error>& problems);

}  // namespace ggufmill
