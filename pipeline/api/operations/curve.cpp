// `curve`: the loss of the best choice of types at each size, which the verb `plan` prints with --curve.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/curve_page.h"
#include "pipeline/api/describe.h"
#include "pipeline/api/operations/curves.h"
#include "pipeline/api/operations/jobs.h"
#include "pipeline/api/operations/measuring.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/pages.h"
#include "pipeline/api/table.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

constexpr unsigned kUsualPoints = 25, kMaxPoints = 10'000;

struct CurveRequest : JobRequest {
  unsigned output = 0, points = kUsualPoints;
  bool measure = true;
  std::string html{};
  bool overwrite = false;
};

// Returns a table of the points sorted by size. For recipes, also shows the loss as a multiple of that of the nearest
// smaller best choice.
std::string table_of(std::vector<CurvePoint> curve) {
  std::vector<Row> rows;
  std::ranges::stable_sort(curve, {}, &CurvePoint::bytes);
  double best = 0;
  for (const CurvePoint& point : curve) {
    if (point.recipe.empty()) best = point.loss;
    rows.push_back({human_bytes(point.bytes), fmt::format("{:.4g}", point.loss),
                    point.is_target ? "(this job's target)" : point.recipe,
                    point.recipe.empty() || best <= 0 ? "" : fmt::format("{:.2f}", point.loss / best)});
  }
  return render_table(
      {{"tensors", Align::kRight}, {"loses", Align::kRight}, {"recipe"}, {"times the best below", Align::kRight}},
      rows);
}

Result<Answer<Curve>> run_curve(const Context& context, const CurveRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(Job job, single_job(context, request, call, "a curve", "use a pipeline file for each source"));
  if (request.output >= job.outputs.size())
    return usage_error(fmt::format("output {} does not exist", request.output),
                       fmt::format("the job has {}, numbered from 0", job.outputs.size()));
  BOOST_OUTCOME_TRY(
      take_measurement(context, job, request.measure ? IfUnmeasured::kMeasure : IfUnmeasured::kLeave, call));
  JobCurve made{request.output, {}};
  BOOST_OUTCOME_TRY(made.curve, context.curve(job, request.output, request.points));
  if (!request.html.empty()) {
    BOOST_OUTCOME_TRY(write_curves_page(context, job, {made}, request.html, request.overwrite));
  }
  return Answer<Curve>{std::move(made.curve)};
}

}  // namespace

Result<std::vector<JobCurve>> curves_of(const Context& context, const Job& job) {
  std::vector<JobCurve> curves;
  for (std::size_t i = 0; i < job.outputs.size(); ++i) {
    if (std::ranges::none_of(job.outputs[i].stages, [](const auto& stage) { return target_of(*stage); })) continue;
    BOOST_OUTCOME_TRY(Curve curve, context.curve(job, i, kUsualPoints));
    curves.push_back({i, std::move(curve)});
  }
  if (!curves.empty()) return curves;
  return usage_error("no output of the job has a target, so there is no curve",
                     "set a target, for example quantize: {target: {bits: 4.5}}");
}

Status write_curves_page(const Context& context, const Job& job, const std::vector<JobCurve>& curves,
                         const std::string& path, bool overwrite) {
  std::vector<std::pair<std::string, Curve>> titled;
  for (const JobCurve& each : curves)
    titled.emplace_back(fmt::format("{}, output {}", job.file, each.output), each.curve);
  BOOST_OUTCOME_TRY(std::vector<std::string> read, context.inputs(job));
  return write_page(context, path, curve_html(titled), std::move(read), overwrite);
}

std::string text_of(const Curve& curve) {
  if (curve.other_points.empty()) return table_of(curve.points);
  return fmt::format("{}:\n{}\n{}:\n{}", curve.encoder, table_of(curve.points), curve.other_encoder,
                     table_of(curve.other_points));
}

OperationSpec curve_operation() {
  using Options = std::vector<Option<CurveRequest>>;
  using Request = CurveRequest;
  return operation(OperationOf<CurveRequest, Curve>{
      .name = "curve",
      .group = OperationGroup::kChoose,
      .summary = "Return the loss of the best choice of types at each size",
      .description = "Return the loss of the best choice of types at each size, for an output of a job with a target, "
                     "and those of the built-in recipes. On the command line, `ggufmill plan --curve` prints it.",
      .examples = "  ggufmill plan job.yaml --curve",
      .has_verb = false,
      .in_python = {.type = "list[dict[str, Any]]",
                    .returns = "dictionaries: `bytes` of all tensors, `loss`, `recipe` (None: the best choice of that "
                               "size), and `target`, true for the job's own target"},
      .options = Options() + pipeline_file_options() +
                 Options{option("output", &Request::output, "number of the output, from 0"),
                         option("points", &Request::points, integer<unsigned>().at_least(1).at_most(kMaxPoints),
                                "number of sizes"),
                         option("measure", &Request::measure, "first measure what is not in the cache"),
                         option("html", &Request::html, path(), "also write an HTML page to this file"),
                         option("overwrite", &Request::overwrite, "replace an existing page")},
      .result = {.write = [](const Curve& curve, const TextSink& sink) { sink(to_json_text(describe_curve(curve))); },
                 .doc = "{encoder, points: [{recipe, bytes, loss, target}], other: {encoder, points}}, where `other` "
                        "has the same for searches if the target uses the reference's encoders, or the other way "
                        "round, and is missing if that is not measured"},
      .context = ContextUse::kCheckpoints,
      .progress = "measuring",
      .run = run_curve,
      .print = [](const Curve& curve, TextOutput& to) { to.out = text_of(curve); }});
}

}  // namespace ggufmill
