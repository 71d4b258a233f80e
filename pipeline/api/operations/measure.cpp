// `measure`: measures the error that each candidate type would cause in each tensor.

#include <fmt/format.h>

#include "pipeline/api/operations/measuring.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/core/option_reference.h"

namespace ggufmill {
namespace {

struct MeasureRequest : JobRequest {
  std::string output{}, html{};
  bool overwrite = false, both_encoders = false;
  std::optional<std::uint64_t> part{}, parts{};
  bool resume = true;
};

Status check_measure(const MeasureRequest& request) {
  if (!request.part && !request.parts) return ok();
  if (!request.part || !request.parts)
    return usage_error(
        fmt::format("{} and {} must be given together", option_reference("part"), option_reference("parts")),
        fmt::format("for example {} {}", option_reference("part", "3"), option_reference("parts", "16")));
  if (*request.part >= *request.parts)
    return usage_error(fmt::format("part {} of {} does not exist", *request.part, *request.parts),
                       "parts are numbered from 0");
  for (const auto& [name, path] : {std::pair("output", &request.output), {"html", &request.html}})
    if (!path->empty())
      return usage_error(fmt::format("{} is not supported for a part", option_reference(name)),
                         fmt::format("run the measurement without {} and with {} once all parts are done",
                                     option_reference("part"), option_reference(name)));
  return ok();
}

Result<Answer<Measurement>> run_measure(const Context& context, const MeasureRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(Job job,
                    single_job(context, request, call, "measuring", "measure each source with its own pipeline file"));
  job = without_measurements(job);
  if (!request.html.empty()) {
    BOOST_OUTCOME_TRY(check_measurement_page(context, job, request.output, request.html, request.overwrite));
  }
  MeasuringOptions options;
  options.output = request.output;
  options.overwrite = request.overwrite;
  options.starts_over = !request.resume;
  if (request.part) options.part = MeasuredPart{*request.part, *request.parts};
  BOOST_OUTCOME_TRY(Measurement measured, measure_with_notes(context, job, options, call));
  if (request.both_encoders) {
    options.output.clear();
    BOOST_OUTCOME_TRY(measure_with_notes(context, with_other_encoders(job), options, call));
  }
  if (!request.html.empty()) {
    BOOST_OUTCOME_TRY(write_measurement_page(measured, request.html, request.overwrite));
    call.note({fmt::format("wrote {}  page", request.html)});
  }
  return Answer<Measurement>{std::move(measured)};
}

void write_measured(const Measurement& measured, const TextSink& sink) {
  const std::string text = write_measurement(measured);
  sink(std::string_view(text).substr(0, text.rfind('}') + 1));
}

}  // namespace

OperationSpec measure_operation() {
  using Options = std::vector<Option<MeasureRequest>>;
  using Request = MeasureRequest;
  return operation(OperationOf<MeasureRequest, Measurement>{
      .name = "measure",
      .group = OperationGroup::kChoose,
      .summary = "Measure what each type costs each tensor, for a target",
      .description =
          "For the targets of a pipeline file (quantize: {target: ...}): read a sample of each tensor's rows and "
          "measure "
          "what each candidate type costs the tensor, with and without importance, and how precisely that is known. "
          "`sample` in the pipeline file determines how many rows are read; the default is one of 16. Writes no part "
          "of the model. The results are kept in a cache, $GGUFMILL_CACHE/measurements, by default "
          "~/.cache/ggufmill/measurements: plan, check, and run use them for every pipeline file with the same values, "
          "importance, encoders and sample, and only what is missing is measured. run measures automatically. An "
          "interrupted measurement resumes from the tensors already measured. Machines that share the cache can "
          "measure one part each: a call without @part then uses their results and measures what is missing.",
      .examples =
          "  ggufmill measure job.yaml\n"
          "  ggufmill measure job.yaml --output figures.json     # quantize: {target: .., measured: figures.json}\n"
          "  ggufmill measure job.yaml --both-encoders && ggufmill plan job.yaml --curve --html curve.html\n"
          "  ggufmill measure job.yaml --part $SLURM_ARRAY_TASK_ID --parts 16",
      .in_python = {.type = "Result", .returns = "the measurement, a dictionary in the format of its files"},
      .options =
          Options() + pipeline_file_options() +
          Options{option("output", &Request::output, path(),
                         "also write the measurement to this file, for `measured` in a pipeline file")
                      .short_flag('o'),
                  option("html", &Request::html, path(),
                         "also write an HTML page: a sortable table of what each type loses in each tensor"),
                  option("overwrite", &Request::overwrite, "replace an existing measurement or page"),
                  option("both_encoders", &Request::both_encoders,
                         "also measure with searches if the targets use the reference's encoders, or the other way "
                         "round, so that `plan --curve` compares the two"),
                  option("part", &Request::part, "measure only this part of @parts; parts are numbered from 0"),
                  option("parts", &Request::parts, integer().at_least(1).at_most(ClusterOptions::kMaxParts),
                         "number of parts"),
                  option("resume", &Request::resume, "use what the cache contains")
                      .as_flags({{"no-resume", "false", "measure everything, whatever the cache contains"}}),
                  threads_option()},
      .result = {.write = write_measured, .doc = "the measurement, in the format of its files"},
      .context = ContextUse::kCheckpoints,
      .progress = "measuring",
      .check = check_measure,
      .run = run_measure,
      .print = [](const Measurement&, TextOutput&) {}});
}

}  // namespace ggufmill
