// `ggufmill measure`: measures the error that each candidate type would cause in each tensor.

#include <fmt/format.h>

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
      "For the targets of a pipeline file (quantize: {target: ...}): read a sample of each tensor's rows and measure "
      "what each candidate type costs the tensor, with and without importance, and how precisely that is known. "
      "`sample` in the pipeline file determines how many rows are read; the default is one of 16. Writes no part of "
      "the model. The results are kept in a cache, $GGUFMILL_CACHE/measurements, by default "
      "~/.cache/ggufmill/measurements: plan, check, and run use them for every pipeline file with the same values, "
      "importance, encoders and sample, and only what is missing is measured. run measures automatically. An "
      "interrupted measurement resumes from the tensors already measured. Machines that share the cache can measure "
      "one part each: a call without --part then uses their results and measures what is missing.";
  spec.examples =
      "  ggufmill measure job.yaml\n"
      "  ggufmill measure job.yaml --output figures.json     # quantize: {target: .., measured: figures.json}\n"
      "  ggufmill measure job.yaml --both-encoders && ggufmill plan job.yaml --curve --html curve.html\n"
      "  ggufmill measure job.yaml --part $SLURM_ARRAY_TASK_ID --parts 16";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("output,o", po::value<std::string>(),
      "also write the measurement to this file, for `measured` in a pipeline file");
  add("html", po::value<std::string>(),
      "also write an HTML page: a sortable table of what each type loses in each tensor");
  add("overwrite", "replace an existing measurement or page");
  add("both-encoders",
      "also measure with searches if the targets use the reference's encoders, or the other way round, so that "
      "`plan --curve` compares the two");
  add("part", po::value<std::string>(), "measure only this part of --parts; parts are numbered from 0");
  add("parts", po::value<std::string>(), "number of parts");
  add("no-resume", "measure everything, whatever the cache contains");
  add("threads", po::value<std::string>(), "number of threads, or auto; overrides limits.threads");
  add("quiet,q", "print no progress and no summary");
  return spec;
}

Result<std::optional<MeasuredPart>> part_to_measure(const po::variables_map& values) {
  const auto part = text_of(values, "part"), parts = text_of(values, "parts");
  if (!part && !parts) return std::nullopt;
  if (!part || !parts)
    return usage_error("--part and --parts must be given together", "for example --part 3 --parts 16");
  MeasuredPart read;
  BOOST_OUTCOME_TRY(read.part, parse_part(*part));
  BOOST_OUTCOME_TRY(read.parts, parse_part(*parts));
  if (read.parts > ClusterOptions::kMaxParts)
    return usage_error(fmt::format("--parts must be at most {}", ClusterOptions::kMaxParts), "give a smaller number");
  if (read.part >= read.parts)
    return usage_error(fmt::format("part {} of {} does not exist", read.part, read.parts), "parts are numbered from 0");
  return read;
}

int measure_verb(const Parsed& parsed) {
  auto loaded = load_from(parsed.values);
  if (!loaded) return fail(loaded.error());
  if (loaded.value().batch.is_matrix)
    return fail(
        usage_error("measuring is not supported for a batch", "measure each source with its own pipeline file"));
  Job& job = loaded.value().batch.jobs.front().job;
  if (const Status read = read_job_options(parsed.values, job); !read) return fail(read.error());
  job = without_measurements(job);
  const auto path = value_or<std::string>(parsed.values, "output", "");
  const auto part = part_to_measure(parsed.values);
  if (!part) return fail(part.error());
  for (const char* option : {"output", "html"})
    if (part.value() && parsed.values.count(option))
      return fail(
          usage_error(fmt::format("--{} is not supported for a part", option),
                      fmt::format("run the measurement without --part and with --{} once all parts are done", option)));
  const auto page = text_of(parsed.values, "html");
  const bool overwrite = parsed.values.count("overwrite") > 0, quiet = parsed.values.count("quiet") > 0;
  const Context& context = loaded.value().context;
  if (page) {
    const Status free = check_measurement_page(context, job, path, *page, overwrite);
    if (!free) return fail(free.error());
  }
  const bool starts_over = parsed.values.count("no-resume") > 0;
  const auto measured = measure_showing_progress(
      context, job, {.output = path, .overwrite = overwrite, .starts_over = starts_over, .part = part.value()}, quiet);
  if (measured && parsed.values.count("both-encoders")) {
    const auto other = measure_showing_progress(context, with_other_encoders(job),
                                                {.starts_over = starts_over, .part = part.value()}, quiet);
    if (!other) return fail(other.error());
  }
  if (measured && page) {
    if (const Status written = write_measurement_page(measured.value(), *page, overwrite); !written)
      return fail(written.error());
    if (!quiet) print_note(fmt::format("wrote {}  page", *page));
  }
  if (measured) return 0;
  const int code = fail(measured.error());
  return signal_exit_code().value_or(code);
}

}  // namespace

const Verb kMeasureVerb{"measure", OperationGroup::kChoose, "Measure what each type costs each tensor, for a target",
                        measure_command, measure_verb};

}  // namespace ggufmill
