// `ggufmill measure`: measures the error that each candidate type would cause in each tensor.

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

CommandSpec measure_command() {
  CommandSpec spec;
  spec.usage = "ggufmill measure FILE [options]";
  spec.description =
      "For the targets of a pipeline file (quantize: {target: ...}): reads the source once and measures, over all "
      "values, what each candidate type would cost each tensor, with importance and without. Nothing of the model is "
      "written. plan, check and run take the figures from there; run measures by itself where they are missing. One "
      "that was ended early goes on from the tensors that it has. Machines that share a folder can measure a part "
      "each: a call without --part then takes what they have, and measures what is missing.";
  spec.examples =
      "  ggufmill measure job.yaml\n"
      "  ggufmill measure job.yaml --output figures.json     # quantize: {target: .., measured: figures.json}\n"
      "  ggufmill measure job.yaml --part $SLURM_ARRAY_TASK_ID --parts 16";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("output,o", po::value<std::string>(), "where to write; FILE.measured.json in place of FILE.yaml");
  add("html", po::value<std::string>(), "a page too: what each type loses of each tensor, sortable");
  add("overwrite", "replace a measurement, or a page, that is there already");
  add("part", po::value<std::string>(), "measure this part of --parts; parts count from 0");
  add("parts", po::value<std::string>(), "how many parts there are");
  add("no-resume", "begin anew, whatever an earlier call has measured");
  add("threads", po::value<std::string>(), "as limits.threads: a number, or auto");
  add("quiet,q", "no progress and no summary");
  return spec;
}

Result<std::optional<MeasuredPart>> part_to_measure(const po::variables_map& values) {
  const auto part = text_of(values, "part"), parts = text_of(values, "parts");
  if (!part && !parts) return std::nullopt;
  if (!part || !parts) return usage_error("--part and --parts go together", "--part 3 --parts 16");
  MeasuredPart read;
  BOOST_OUTCOME_TRY(read.part, parse_part(*part));
  BOOST_OUTCOME_TRY(read.parts, parse_part(*parts));
  if (read.parts > ClusterOptions::kMostParts)
    return usage_error(fmt::format("there are at most {} parts", ClusterOptions::kMostParts), "give fewer --parts");
  if (read.part >= read.parts)
    return usage_error(fmt::format("there is no part {} of {}", read.part, read.parts), "parts count from 0");
  return read;
}

int measure_verb(const Parsed& parsed) {
  auto loaded = load_from(parsed.values);
  if (!loaded) return fail(loaded.error());
  if (loaded.value().batch.is_matrix)
    return fail(usage_error("a batch is not measured as one", "measure each of its sources by a file of its own"));
  Job& job = loaded.value().batch.jobs.front().job;
  if (const Status read = read_job_options(parsed.values, job); !read) return fail(read.error());
  const auto path = value_or<std::string>(parsed.values, "output", measurement_path(job));
  const auto part = part_to_measure(parsed.values);
  if (!part) return fail(part.error());
  if (part.value() && parsed.values.count("html"))
    return fail(usage_error("a part has no page", "measure the whole with --html once all parts are there"));
  const auto page = text_of(parsed.values, "html");
  const bool overwrite = parsed.values.count("overwrite") > 0, quiet = parsed.values.count("quiet") > 0;
  const Context& context = loaded.value().context;
  if (page) {
    auto read = context.inputs(job);
    if (!read) return fail(read.error());
    read.value().push_back(path);  // the page must not overwrite the measurement
    const Status free = context.check_written({*page, "page"}, read.value(), overwrite);
    if (!free) return fail(free.error());
  }
  const auto measured = measure_to(context, job, path,
                                   {.overwrite = overwrite,
                                    .quiet = quiet,
                                    .begins_anew = parsed.values.count("no-resume") > 0,
                                    .part = part.value()});
  if (measured && page) {
    if (const Status written = write_text(*page, measurement_html(measured.value()), overwrite); !written)
      return fail(written.error());
    if (!quiet) say_note(fmt::format("wrote {}  the page", *page));
  }
  if (measured) return 0;
  const int code = fail(measured.error());
  return signal_exit_code().value_or(code);
}

}  // namespace

const Verb kMeasureVerb{"measure", "measure what each type would cost each tensor, for a target", measure_command,
                        measure_verb};

}  // namespace ggufmill
