// `ggufmill check`: checks everything that can be known without reading any weights.

#include <fmt/format.h>

#include "pipeline/api/reports.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

CommandSpec check_command() {
  CommandSpec spec;
  spec.usage = "ggufmill check FILE [options]";
  spec.description =
      "Check a pipeline file, the headers of the source, all rules, the paths of the outputs, disk space, and memory. "
      "Reads only headers and writes nothing. Exit code 0 means that `run` can start.";
  spec.examples = "  ggufmill check configs/demo.yaml";
  spec.positional = "file";
  add_job_options(spec.options);
  spec.options.add_options()("overwrite", "do not report existing outputs as errors");
  return spec;
}

int check(const Planned& planned, bool overwrite) {
  const Plan& plan = planned.plan;
  std::vector<Error> errors;
  if (planned.with_steps) {
    PublishOptions options;
    options.batch.run.overwrite = overwrite;
    errors = check_steps(planned.context, *planned.with_steps, options);
    if (errors.empty()) errors = planned.context.problems(plan);
  } else {
    errors = planned.context.check(plan, overwrite);
  }
  if (!planned.measured.empty()) print_note(planned.measured);
  print_what_run_solves(errors);
  if (!errors.empty()) return fail(of_source(errors, planned.source));
  const std::string which = planned.source.empty() ? plan.file : plan.file + ": " + planned.source;
  print_note(fmt::format("{}: ok: {}, {} to read, {} to write as {}, at least {} of memory", which,
                         counted(plan.source.tensors, "tensor"), human_bytes(plan.bytes_read()),
                         human_bytes(plan.bytes_written()), counted(plan.outputs.size(), "output"),
                         human_bytes(plan.least_memory)));
  for (const PlannedOutput& output : plan.outputs)
    if (const std::string fallbacks = describe_fallbacks(output); !fallbacks.empty())
      print_note(fmt::format("{}: {}", output.files.front().path, fallbacks));
  for (const Leftover& file : planned.context.leftovers(plan).files)
    print_note(fmt::format("{} ({}); `run --discard` removes it", describe(file), human_bytes(file.bytes)));
  return 0;
}

int check_verb(const Parsed& parsed) {
  const bool overwrite = parsed.values.count("overwrite") > 0;
  return for_each_plan(parsed.values, [&](const Planned& planned) { return check(planned, overwrite); });
}

}  // namespace

const Verb kCheckVerb{"check", OperationGroup::kConvert,
                      "Check a pipeline file, its inputs, disk space, and memory without writing anything",
                      check_command, check_verb};

}  // namespace ggufmill
