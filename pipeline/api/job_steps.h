#pragma once
// Jobs with steps: jobs that do more than write their outputs in one read of the source. Importance is computed from an
// output before others are made; outputs are compared, described in a card, given presets, attested, and handed to the
// user's programs.
//
// Every step can be interrupted at any point, and running the job again resumes it: outputs are resumed by their
// journals and recognized by their manifests, and the results of the other steps are kept in the user's cache
// (step_results.h) under a key of what they depend on.

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/batch.h"
#include "pipeline/core/error.h"

namespace ggufmill {

class Context;
class JobOutputs;

enum class StepKind { kWrite, kImportance, kQuality, kCard, kPresets, kAttestation, kUpload, kCommand };
std::string_view name_of(StepKind kind);  // "write"

struct JobStep {
  StepKind kind = StepKind::kWrite;
  std::string text;      // what it does, in one line
  bool is_done = false;  // nothing is left to do
};

// The functions below are those of a wing (configs/wings.tsv); in a build that omits it, no job has steps.

// Fails if the job has steps that this build cannot run.
Status check_steps_are_built(const Job& job);
// Returns true if the job is to be run by run_steps(); Context::run() ignores its steps.
bool has_steps(const Job& job);
bool has_steps(const Batch& batch);  // of any of its jobs

struct StepOptions {
  BatchOptions batch{};  // for the steps that write outputs
  // Called when a step starts that is not done yet.
  std::function<void(const JobStep& step, std::size_t index, std::size_t count)> begun{};
  // Receives the path of the model on which the program of a step runs, the number of chunks that it has done, and
  // their total, 0 while it is unknown.
  std::function<void(const JobStep& step, const std::string& model, std::uint64_t done, std::uint64_t total)> chunks{};
  // Receives the bytes that an upload has sent, or that an attestation has read, and the bytes of all files.
  std::function<void(const JobStep& step, std::uint64_t done, std::uint64_t total)> sent{};
};

struct StepReport {
  std::vector<BatchCell> cells;  // of all outputs, in order
  std::vector<std::string> warnings, notes;
};

// Returns the steps of a job in order. Reads headers, and the results of earlier runs.
Result<std::vector<JobStep>> steps_of(const Context& context, const BatchJob& job, const StepOptions& options);
// Returns the paths of files that the job has sent to the hub and removed.
std::set<std::string> sent_files(const Context& context, const BatchJob& job);
// Returns the reasons why the job cannot be run, as far as they can be known before its first step: those of
// Context::check() for its outputs, missing programs and texts, paths that are written twice.
std::vector<Error> check_steps(const Context& context, const BatchJob& job, const StepOptions& options);
// Returns what the user should know before the steps of a job run. `plan` is that of its outputs.
std::vector<std::string> step_warnings(const Job& job, const Plan& plan);
// Runs all steps that are not done. Checks everything that check_steps() checks first. Manifests are always written.
Result<StepReport> run_steps(const Context& context, const BatchJob& job, const StepOptions& options);

// Returns the job with the importance that an earlier run has computed; where none has, its outputs are planned with an
// assumed one.
Job with_known_importance(const Context& context, const Job& job);

// ---- for any job ----

// Returns [{step, what, done}].
boost::json::array describe_steps(const std::vector<JobStep>& steps);
// Returns whether an output exists under its name; nullopt if its server cannot be asked.
std::optional<bool> output_exists(const std::string& path);
// Returns {running, can_resume, units, units_done, outputs: [{path, bytes, there, sent}], leftovers: [{path, output,
// bytes, of_this_plan, in_use, other_since, cluster_job}], cluster_jobs}, and for a job with steps {steps: [{step,
// what, done}]}. Reads only headers. `plan` is that of the job; `with_steps` is null for a job without steps.
boost::json::object describe_status(const Context& context, const Plan& plan, const BatchJob* with_steps);

}  // namespace ggufmill
