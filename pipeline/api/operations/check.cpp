// `check`: checks everything that can be known without reading any weights.

#include <fmt/format.h>

#include "pipeline/api/operations/jobs.h"
#include "pipeline/api/operations/measuring.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/reports.h"
#include "pipeline/api/table.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct CheckRequest : JobRequest {
  bool overwrite = false;
};

// A job that can be run.
struct CheckedJob {
  std::string source{};
  std::uint64_t bytes_read = 0, bytes_written = 0, memory = 0;
};
struct Checked {
  std::vector<CheckedJob> jobs{};
};

std::vector<Error> problems_of(const Context& context, const PlannedJob& planned, bool overwrite) {
  if (!planned.with_steps) return context.check(planned.plan, overwrite);
  StepOptions options;
  options.batch.run.overwrite = overwrite;
  const std::vector<Error> errors = check_steps(context, *planned.with_steps, options);
  return errors.empty() ? context.problems(planned.plan) : errors;
}

void note_checked(const Context& context, const PlannedJob& planned, const Call& call) {
  const Plan& plan = planned.plan;
  const std::string which = planned.source.empty() ? plan.file : plan.file + ": " + planned.source;
  call.note({fmt::format("{}: ok: {}, {} to read, {} to write as {}, at least {} of memory", which,
                         counted(plan.source.tensors, "tensor"), human_bytes(plan.bytes_read()),
                         human_bytes(plan.bytes_written()), counted(plan.outputs.size(), "output"),
                         human_bytes(plan.least_memory))});
  for (const PlannedOutput& output : plan.outputs)
    if (const std::string fallbacks = describe_fallbacks(output); !fallbacks.empty())
      call.note({fmt::format("{}: {}", output.files.front().path, fallbacks)});
  for (const Leftover& file : context.leftovers(plan).files)
    call.note({fmt::format("{} ({}); `run --discard` removes it", describe(file), human_bytes(file.bytes))});
}

Result<Answer<Checked>> run_check(const Context& context, const CheckRequest& request, const Call& call) {
  Answer<Checked> answer{};
  Diagnostics errors;
  BOOST_OUTCOME_TRY(
      answer.is_partial, for_each_plan(context, request, call, errors, [&](const PlannedJob& planned) {
        std::vector<Error> problems = problems_of(context, planned, request.overwrite);
        if (!planned.measured.empty()) call.note({planned.measured});
        problems = without_what_run_solves(std::move(problems), call);
        if (!problems.empty()) return problems;
        const Plan& plan = planned.plan;
        if (call.shows_notes) note_checked(context, planned, call);
        answer.value.jobs.push_back({planned.source, plan.bytes_read(), plan.bytes_written(), plan.least_memory});
        return problems;
      }));
  if (!errors.empty()) answer.failure = errors.together();
  return answer;
}

ResultForm<Checked> check_result() {
  const ResultForm<CheckedJob> job{
      {result("source", &CheckedJob::source, "its source in a batch; else empty"),
       result("bytes_read", &CheckedJob::bytes_read, "bytes of tensors to read"),
       result("bytes_written", &CheckedJob::bytes_written, "bytes of tensors to write"),
       result("least_memory", &CheckedJob::memory, "bytes of memory that it needs at least")}};
  return {{result("jobs", &Checked::jobs, job, "the jobs that can be run: one, or for a batch one for each source")}};
}

}  // namespace

OperationSpec check_operation() {
  using Options = std::vector<Option<CheckRequest>>;
  return operation(OperationOf<CheckRequest, Checked>{
      .name = "check",
      .group = OperationGroup::kConvert,
      .summary = "Check a pipeline file, its inputs, disk space, and memory without writing anything",
      .description =
          "Check a pipeline file, the headers of the source, all rules, the paths of the outputs, disk space, and "
          "memory. Reads only headers and writes nothing.",
      .for_command_line = "Exit code 0 means that `run` can start.",
      .for_programs = "Success means that `run` can start; a failure has all problems.",
      .examples = "  ggufmill check job.yaml",
      .in_python = {.type = "list[Error]", .returns = "the problems, a list of errors: empty if `run` can start"},
      .options = Options() + pipeline_file_options() +
                 Options{option("overwrite", &CheckRequest::overwrite, "do not report existing outputs as errors")},
      .result = check_result(),
      .context = ContextUse::kCheckpoints,
      .run = run_check,
      .print = [](const Checked&, TextOutput&) {}});
}

}  // namespace ggufmill
