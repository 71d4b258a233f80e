// `ggufmill measure`: what every candidate type would cost every tensor.

#include <fmt/format.h>

#include "pipeline/api/measure_page.h"
#include "pipeline/api/reports.h"
#include "pipeline/cli/measuring.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill measure FILE [options]";
  spec.description =
      "For the targets of a pipeline file (quantize: {target: ...}): reads the source once and measures, over all "
      "values, what each candidate type would cost each tensor, with importance and without. Nothing of the model is "
      "written. plan, check and run take the figures from there; run measures by itself where they are missing.";
  spec.examples =
      "  ggufmill measure job.yaml\n"
      "  ggufmill measure job.yaml --output figures.json     # quantize: {target: .., measured: figures.json}";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("output,o", po::value<std::string>(), "where to write; FILE.measured.json in place of FILE.yaml");
  add("html", po::value<std::string>(), "a page too: what each type loses of each tensor, sortable");
  add("threads", po::value<std::string>(), "as limits.threads: a number, or auto");
  add("quiet,q", "no progress and no summary");
  return spec;
}

int measure_verb(const Parsed& parsed) {
  auto loaded = load_from(parsed.values);
  if (!loaded) return fail(loaded.error());
  if (loaded.value().batch.is_matrix)
    return fail(usage_error("a batch is not measured as one", "measure each of its sources by a file of its own"));
  Job& job = loaded.value().batch.jobs.front().job;
  if (const Status read = read_job_options(parsed.values, job); !read) return fail(read.error());
  const auto path = value_or<std::string>(parsed.values, "output", measurement_path(job));
  const auto measured = measure_to(loaded.value().context, job, path, parsed.values.count("quiet") > 0);
  if (measured && parsed.values.count("html")) {
    const auto page = parsed.values["html"].as<std::string>();
    if (const Status written = write_text(page, measurement_html(measured.value()), true); !written)
      return fail(written.error());
    if (!parsed.values.count("quiet")) say_note(fmt::format("wrote {}  the page", page));
  }
  if (measured) return 0;
  const int code = fail(measured.error());
  return signal_exit_code().value_or(code);
}

}  // namespace

const Verb kMeasureVerb{"measure", "measure what each type would cost each tensor, for a target", command,
                        measure_verb};

}  // namespace ggufmill
