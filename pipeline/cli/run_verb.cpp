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
      "Carries out a pipeline file: reads the source once and writes all outputs; of a batch (`matrix`) each source in "
      "turn, without what is there already, made of the same in the same way. An output appears under its name whole "
      "or not at all.";
  spec.examples =
      "  ggufmill run configs/demo.yaml\n"
      "  ggufmill run job.yaml --set outputs.0.gguf=/data/out.gguf --overwrite";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("overwrite", "replace outputs that are there already");
  add("skip-unchanged", "leave out outputs whose manifests say that they are what this run would make");
  add("fail-fast", "of a batch: begin nothing after an output that failed");
  add("threads", po::value<std::string>(), "as limits.threads: a number, or auto");
  add("io", po::value<std::string>(), "as limits.io: cached, streaming or direct");
  add_run_options(spec.options);
  return spec;
}

int run_verb(const Parsed& parsed) {
  auto loaded = load_from(parsed.values);
  if (!loaded) return fail(loaded.error());
  const bool overwrite = parsed.values.count("overwrite") > 0;
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

const Verb kRunVerb{"run", "carry out a pipeline file", run_command, run_verb};

}  // namespace ggufmill
