#pragma once
// The pipeline file of a request: read, changed and planned.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/job_steps.h"
#include "pipeline/api/operations/operation.h"

namespace ggufmill {

// A pipeline file: its path, or its contents.
struct PipelineFile {
  std::string path{};
  std::string text{};  // empty: that of the file
};

// The options that all requests with a pipeline file have, and those of its limits, of which each operation has some.
struct JobRequest {
  PipelineFile job{};
  std::vector<std::string> set{};         // "PATH=VALUE"
  std::vector<std::string> parameters{};  // "NAME=VALUE"
  std::optional<unsigned> threads{};
  std::optional<IoMode> io{};
};
std::vector<Option<JobRequest>> pipeline_file_options();
Option<JobRequest> threads_option();
Option<JobRequest> io_option();

// Returns the jobs of a request: a batch, or one job.
Result<Batch> jobs_of(const Context& context, const JobRequest& request, const Call& call);
// Returns the only job. Fails with exit code 2 for a batch: `what` ("measuring") is not supported, and `help` says why.
Result<Job> single_job(const Context& context, const JobRequest& request, const Call& call, std::string_view what,
                       std::string_view help);
// Applies the options that change a job but not the text of its pipeline file.
void change_limits(const JobRequest& request, Job& job);

struct PlannedJob {
  Plan plan;
  std::string source{};                  // source of the job in a batch; else empty
  std::string measured{};                // a note about the measurement of its targets, see take_measurement()
  std::optional<BatchJob> with_steps{};  // the job, if it is to be run by run_steps()
};

enum class IfUnmeasured {
  kLeave,            // leave the job unchanged
  kMeasure,          // measure
  kMeasureNewFiles,  // measure if no output exists yet
};

// Plans a job with the limits of the request, and warns. `source`: the job's source in a batch; else empty.
Result<PlannedJob> plan_job(const Context& context, Job job, const JobRequest& request, const Call& call,
                            IfUnmeasured if_unmeasured = IfUnmeasured::kLeave, const std::string& source = {});

// Calls `work` with the plan of each job of the request. Adds the errors of jobs that cannot be planned, and those that
// `work` returns, to `errors`. Returns true for a batch.
Result<bool> for_each_plan(const Context& context, const JobRequest& request, const Call& call, Diagnostics& errors,
                           const std::function<std::vector<Error>(const PlannedJob& planned)>& work);

// Writes the JSON objects of all jobs: that of the only one, or for a batch {sources: [{source, ...}]}.
struct ObjectOfJob {
  std::string source;  // in a batch; else empty
  boost::json::object object;
};
void write_objects(std::vector<ObjectOfJob> objects, const TextSink& sink);

// Returns the steps of a job as a table, with those that are done.
std::string table_of(const std::vector<JobStep>& steps);

}  // namespace ggufmill
