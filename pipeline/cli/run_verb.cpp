// `ggufmill run`: executes a pipeline file.

#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec run_command() {
  CommandSpec spec;
  spec.usage = "ggufmill run FILE [options]";
  spec.description =
      "Run a pipeline file: read the source once and write all outputs. For a batch (`matrix`), process the sources in "
      "order, skipping outputs that already exist with unchanged inputs and options. An output appears under its name "
      "only once it is complete. For a job with steps (importance that is computed, `quality`, `card`, `after`), run "
      "those that are not done.";
  spec.examples =
      "  ggufmill run configs/demo.yaml\n"
      "  ggufmill run job.yaml --set outputs.0.gguf=/data/out.gguf --overwrite";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("overwrite", "replace existing outputs");
  add("skip-unchanged", "skip outputs whose manifests show that this run would not change them");
  add("fail-fast", "for a batch: start no further outputs after one fails");
  add("threads", po::value<std::string>(), "number of threads, or auto; overrides limits.threads");
  add("io", po::value<std::string>(), "I/O mode: cached, streaming, or direct; overrides limits.io");
  add_run_options(spec.options);
  return spec;
}

int run_verb(const Parsed& parsed) {
  auto loaded = load_from(parsed.values);
  if (!loaded) return fail(loaded.error());
  const bool overwrite = parsed.values.count("overwrite") > 0;
  if (has_steps(loaded.value().batch)) return execute_steps(loaded.value(), parsed.values, overwrite);
  if (loaded.value().batch.is_matrix) return execute_batch(loaded.value(), parsed.values, overwrite);
  const bool may_exist = overwrite || parsed.values.count("skip-unchanged") > 0;
  const IfUnmeasured if_unmeasured = parsed.values.count("discard") > 0 ? IfUnmeasured::kLeave
                                     : may_exist                        ? IfUnmeasured::kMeasure
                                                                        : IfUnmeasured::kMeasureNewFiles;
  const auto planned = plan_job(std::move(loaded.value().context), std::move(loaded.value().batch.jobs.front().job),
                                parsed.values, if_unmeasured);
  if (!planned) return fail(planned.error());
  return execute(planned.value(), parsed.values, overwrite);
}

}  // namespace

const Verb kRunVerb{"run", OperationGroup::kConvert, "Run a pipeline file", run_command, run_verb};

}  // namespace ggufmill
