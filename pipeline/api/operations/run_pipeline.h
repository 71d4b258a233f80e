#pragma once
// Operations that make a pipeline file of their options and run it, as `split` and `convert` do.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

// The options that all of them have: a base of their requests.
struct RunRequest {
  bool overwrite = false, dry_run = false, emit_pipeline = false;
  EngineKind engine = EngineKind::kGraph;
  IoKind io_engine = IoKind::kAuto;
  std::string profile{};
  bool resume = true, discard = false;
  std::vector<std::string> report{};
  bool errors = false;
};
std::vector<Option<RunRequest>> run_options();
std::vector<Option<RunRequest>> engine_rows();  // those without overwrite, dry_run and emit_pipeline
// Fails with exit code 2 for options that exclude each other.
Status check_run(const RunRequest& request);

struct RunFile {
  std::string path;
  std::uint64_t bytes = 0, tensors = 0;
};

// The result of such an operation.
struct PipelineRun {
  std::optional<std::string> pipeline{};        // with emit_pipeline, and then nothing else
  std::optional<std::vector<RunFile>> files{};  // written, or with dry_run those to be written
  std::optional<Report> report{};               // of the run
  // The classes that `convert` supports; then nothing else.
  std::optional<std::vector<std::string>> classes{};
  bool is_dry = false;
};
ResultForm<PipelineRun> pipeline_result();

// The parts that differ between these operations.
struct PipelineHooks {
  std::vector<std::string> inputs{};             // files that were read to make the pipeline, and that it does not name
  std::function<Status(const Plan&)> planned{};  // called before a run, a dry one too
  std::function<Status(const Plan&)> done{};     // called once all outputs are complete
};

// Plans and runs a pipeline file, or does what the request asks for instead.
Result<Answer<PipelineRun>> run_pipeline(const Context& context, const RunRequest& request, const std::string& pipeline,
                                         const Call& call, const PipelineHooks& hooks = {});

// Returns the options of a run that do not depend on its plan.
RunOptions engine_options(const RunRequest& request, const Call& call);
// Runs a plan, with progress and notes.
Result<Report> run_plan(const Context& context, const RunRequest& request, const Plan& plan, const Call& call);
// Removes the leftover files of runs of the plan's outputs.
Status discard_leftovers(const Context& context, const Plan& plan, const Call& call);

// Prints the pipeline file, or for a dry run each file: its path, and with `details` what it contains.
void print_run(const PipelineRun& run, bool details, TextOutput& to);

// Such an operation, with what all of them have: `from` has only what differs, and its options include run_options().
template <class Request>
OperationSpec pipeline_operation(OperationOf<Request, PipelineRun> from) {
  from.options_first = true;
  from.progress = "";
  if (from.result.members.empty()) from.result = pipeline_result();
  return operation(std::move(from));
}

// Texts about runs.

// Describes a leftover file in one line: its path and which run or job it belongs to.
std::string describe(const Leftover& file);
// Notes about leftover files of runs of other plans, which stay and use disk space.
std::vector<Message> foreign_notes(const Leftovers& left);
// Returns a hook that notes what is done with each tensor of the first output; `call` must outlive it.
std::function<Status(const Plan&)> note_tensors(const Call& call);

// A line for each tensor that shows how it is converted.
std::vector<Message> tensor_messages(const PlannedOutput& output);
// Notes about a run: its outputs, and what it took.
std::vector<Message> run_notes(const Plan& plan, const RunReport& report);
// Notes about where the time of a run went.
std::vector<Message> profile_notes(const Plan& plan, const Profile& profile, const RunReport& report);
// Sets what --report and --errors add to the report that a pipeline file asks for. Fails with exit code 2 for a file
// that is neither .json nor .html.
Status add_report(const std::vector<std::string>& paths, bool errors, std::optional<ReportRequest>& report);

}  // namespace ggufmill
