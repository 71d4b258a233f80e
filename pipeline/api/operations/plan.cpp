// `plan`: shows what a pipeline file does to each tensor.

#include <fmt/format.h>

#include "pipeline/api/describe.h"
#include "pipeline/api/fit.h"
#include "pipeline/api/operations/curves.h"
#include "pipeline/api/operations/jobs.h"
#include "pipeline/api/operations/measuring.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/pages.h"
#include "pipeline/api/table.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/plan/written.h"
#include "pipeline/report/json_text.h"
#include "pipeline/report/models_page.h"

namespace ggufmill {
namespace {

struct PlanRequest : JobRequest {
  bool written = false, curve = false;
  std::string html{};
  bool overwrite = false;
};

// The memory that llama.cpp needs to load an output.
struct OutputFit {
  std::uint64_t context = 0;  // tokens
  MemoryUse use{};
};

struct ShownPlan {
  Plan plan;
  std::vector<std::optional<OutputFit>> fits{};  // of each output; none if it is no language model that a map describes
  std::string source{};
  std::optional<std::vector<JobStep>> steps{};
  std::vector<Error> solved{};  // problems that a run solves first
};

struct ShownPlans {
  std::vector<ShownPlan> plans{};
  std::optional<std::vector<Curve>> curves{};  // instead of plans
  bool is_written = false;                     // in the canonical form
  bool is_page = false;
};

constexpr std::uint64_t kMaxContext = 4096;  // tokens

// Returns what a plan's outputs need, with the context of the model or 4096 tokens, if the model has more.
std::vector<std::optional<OutputFit>> fits_of(const Plan& plan, const huggingface::AddedMaps& maps) {
  std::vector<std::optional<OutputFit>> fits;
  for (const PlannedOutput& output : plan.outputs) {
    std::optional<OutputFit>& fit = fits.emplace_back();
    const auto model = model_to_fit(output);
    if (!model) continue;
    FitSettings settings;
    settings.run.context = std::min(kMaxContext, trained_context(model->metadata).value_or(kMaxContext));
    settings.cache_type = &type_named("F16");
    if (settings.run.context == 0) continue;
    const auto fitted = fit_of(model->tensors, model->metadata, settings, maps);
    if (fitted && fitted.value().is_known) fit = OutputFit{settings.run.context, fitted.value().all};
  }
  return fits;
}

// Writes a page with a picture of each output.
Status write_pictures(const Context& context, const PlanRequest& request, const ShownPlans& shown, const Call& call) {
  std::vector<PicturedModel> pictures;
  std::vector<std::string> read;
  for (const ShownPlan& each : shown.plans) {
    for (const std::string& path : each.plan.input_paths()) read.push_back(path);
    for (const PlannedOutput& output : each.plan.outputs) pictures.push_back(pictured(output));
  }
  BOOST_OUTCOME_TRY(write_page(context, request.html, models_html(pictures), std::move(read), request.overwrite));
  call.note({"wrote " + request.html});
  return ok();
}

Result<Answer<ShownPlans>> show_curves(const Context& context, const PlanRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(Job job, single_job(context, request, call, option_reference("curve"), ""));
  BOOST_OUTCOME_TRY(take_measurement(context, job, IfUnmeasured::kLeave, call));
  BOOST_OUTCOME_TRY(std::vector<JobCurve> curves, curves_of(context, job));
  Answer<ShownPlans> answer{};
  if (!request.html.empty()) {
    BOOST_OUTCOME_TRY(write_curves_page(context, job, curves, request.html, request.overwrite));
    call.note({"wrote " + request.html});
    answer.value.is_page = true;
  }
  for (JobCurve& each : curves) answer.value.curves.emplace().push_back(std::move(each.curve));
  return answer;
}

Result<Answer<ShownPlans>> run_plan_operation(const Context& context, const PlanRequest& request, const Call& call) {
  if (request.curve) return show_curves(context, request, call);
  Answer<ShownPlans> answer{};
  ShownPlans& shown = answer.value;
  shown.is_written = request.written;
  BOOST_OUTCOME_TRY(const auto maps, huggingface::AddedMaps::read(huggingface::map_places(context.maps())));
  Diagnostics errors;
  BOOST_OUTCOME_TRY(answer.is_partial,
                    for_each_plan(context, request, call, errors, [&](const PlannedJob& planned) -> std::vector<Error> {
                      std::vector<Error> problems = context.problems(planned.plan);
                      ShownPlan& each = shown.plans.emplace_back(
                          ShownPlan{planned.plan, fits_of(planned.plan, maps), planned.source});
                      if (planned.with_steps) {
                        auto steps = steps_of(context, *planned.with_steps, {});
                        if (steps)
                          each.steps = std::move(steps).value();
                        else
                          problems.push_back(steps.error());
                      }
                      if (!planned.measured.empty()) call.note({planned.measured});
                      return without_what_run_solves(std::move(problems), call, &each.solved);
                    }));
  if (shown.plans.empty()) return errors.together();
  if (!request.html.empty()) {
    BOOST_OUTCOME_TRY(write_pictures(context, request, shown, call));
    shown.is_page = true;
  }
  if (!errors.empty()) answer.failure = errors.together();
  return answer;
}

// Describes what an output needs: "to load it: 4.58 GiB of weights, ..."; empty if that is not known.
std::string fit_text(const std::optional<OutputFit>& fit) {
  if (!fit) return "";
  std::string text = fmt::format("to load it: {} of weights", human_bytes(fit->use.weights));
  if (fit->use.cache != 0)
    text += fmt::format(", {} of KV cache for {}", human_bytes(fit->use.cache), counted(fit->context, "token"));
  if (fit->use.states != 0) text += fmt::format(", {} of states", human_bytes(fit->use.states));
  return text + fmt::format(", about {} for computations; {} together\n", human_bytes(fit->use.compute),
                            human_bytes(fit->use.total()));
}

std::string totals_text(const PlannedOutput& output) {
  const OutputTotals totals = totals_of(output);
  std::string types;
  for (const auto& [name, count] : totals.tensors_of_type)
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, name);
  std::uint64_t file_bytes = 0;
  for (const OutputFile& file : output.files) file_bytes += file.bytes;
  return fmt::format("{} weights, {} -> {} of tensors, {:.4f} bits per weight; {} on disk; {}\n{}",
                     with_commas(totals.weights), human_bytes(totals.bytes_before), human_bytes(totals.bytes),
                     totals.bits_per_weight(), human_bytes(file_bytes), types,
                     output.choice.empty() ? "" : output.choice + "\n");
}

std::string output_text(const PlannedOutput& output, const std::optional<OutputFit>& fit) {
  std::vector<Row> rows;
  for (const PlannedTensor& tensor : output.tensors)
    rows.push_back({tensor.name, describe(tensor.shape), std::string(tensor.source_type->name),
                    std::string(tensor.type->name), with_commas(tensor.bytes), tensor.reason});
  const std::string table = render_table({name_column("tensor"),
                                          whole_column("shape"),
                                          whole_column("from"),
                                          whole_column("to"),
                                          {"bytes", Align::kRight},
                                          {"why"}},
                                         rows);
  return fmt::format("{}{}\n{}{}{}", printable(title_of(output)),
                     output.part ? fmt::format(" ({})", part_name(*output.part)) : "", table, totals_text(output),
                     fit_text(fit));
}

std::string plan_text(const ShownPlan& shown) {
  std::string text;
  for (std::size_t i = 0; i < shown.plan.outputs.size(); ++i)
    text += (text.empty() ? "" : "\n") + output_text(shown.plan.outputs[i], shown.fits[i]);
  if (shown.plan.source.parts.size() > 1)
    text += fmt::format("\nThe checkpoint has the parts {}.\n", list_parts(shown.plan.source.parts));
  return shown.steps ? text + "\n" + table_of(*shown.steps) : text;
}

void print_plans(const ShownPlans& shown, TextOutput& to) {
  if (shown.is_page) return;
  if (shown.curves)
    for (const Curve& curve : *shown.curves) to.out += text_of(curve);
  bool is_first = true;
  for (const ShownPlan& each : shown.plans) {
    if (shown.is_written)
      to.out += write_plan(each.plan) + "\n";
    else
      to.out += (is_first ? "" : "\n") + plan_text(each);
    is_first = false;
  }
}

void add_fits(const std::vector<std::optional<OutputFit>>& fits, boost::json::object& plan) {
  boost::json::array& outputs = plan["outputs"].as_array();
  for (std::size_t i = 0; i < fits.size(); ++i)
    if (fits[i])
      outputs[i].as_object()["fit"] = {{"context", fits[i]->context},     {"weights", fits[i]->use.weights},
                                       {"cache", fits[i]->use.cache},     {"states", fits[i]->use.states},
                                       {"compute", fits[i]->use.compute}, {"total", fits[i]->use.total()}};
}

void write_plans(const ShownPlans& shown, const TextSink& sink) {
  if (shown.curves) {
    for (const Curve& curve : *shown.curves)
      sink((&curve == &shown.curves->front() ? "" : "\n") + to_json_text(describe_curve(curve)));
    return;
  }
  std::vector<ObjectOfJob> objects;
  for (const ShownPlan& each : shown.plans) {
    boost::json::object object =
        shown.is_written ? boost::json::object{{"written", write_plan(each.plan)}} : describe_plan(each.plan);
    for (const Error& error : each.solved)
      object.emplace("solved", boost::json::array())
          .first->value()
          .as_array()
          .push_back(boost::json::object{{"where", error.where}, {"what", error.what}, {"help", error.help}});
    if (!shown.is_written) add_fits(each.fits, object);
    object["identity"] = identity_of(each.plan);
    if (each.steps) object["steps"] = describe_steps(*each.steps);
    objects.push_back({each.source, std::move(object)});
  }
  write_objects(std::move(objects), sink);
}

}  // namespace

OperationSpec plan_operation() {
  using Options = std::vector<Option<PlanRequest>>;
  using Request = PlanRequest;
  return operation(OperationOf<PlanRequest, ShownPlans>{
      .name = "plan",
      .group = OperationGroup::kConvert,
      .summary = "Show what a pipeline file does to each tensor without writing anything",
      .description = "Show every tensor of every output: shape, type before and after, bytes, and the rule that "
                     "decided; then the totals, and the memory that llama.cpp needs for the output with the context of "
                     "the model, of at most 4096 tokens (`ggufmill fit` shows others). Reads only headers and writes "
                     "nothing.",
      .for_command_line =
          "Problems that prevent a run are printed on stderr (exit code 2). With --curve, --html writes a "
          "page with the curves.",
      .for_programs = "For a plan with problems that prevent a run, the failure is @error2, which has the plan as its "
                      "result.",
      .examples = "  ggufmill plan job.yaml\n"
                  "  ggufmill plan job.yaml --json\n"
                  "  ggufmill plan job.yaml --written | sha256sum",
      .in_python = {.type = "Plan", .returns = "a Plan, which run() accepts instead of a job"},
      .options =
          Options() + pipeline_file_options() +
          Options{
              option("written", &Request::written,
                     "give the plan in its canonical JSON form, which is the same on every machine"),
              option("curve", &Request::curve,
                     "for targets: show the loss of the best choice at each size, together with the built-in "
                     "recipes")
                  .only_on_command_line(),
              option("html", &Request::html, path(), "write an HTML page with a picture of every output to this file"),
              option("overwrite", &Request::overwrite, "replace an existing page")},
      .result =
          {.write = write_plans,
           .doc =
               "{source: {name, architecture, files, tensors, weights, bytes, parts}, outputs: [{files: "
               "[{path, bytes}], recipe, problems, tensors: [{name, shape, from, to, fallback_from, "
               "bytes_from, bytes, importance, why}], weights, tensor_bytes_from, tensor_bytes, "
               "bits_per_weight, fit: {context, weights, cache, states, compute, total}}], bytes_read, "
               "bytes_written, least_memory, identity, solved: [{where, what, help}]}, where `fit` has the bytes that "
               "llama.cpp needs for the output, if a map describes its architecture, and `solved` has the "
               "problems that a run solves first, by measuring, and may be missing; for a batch {sources: [{source, "
               "outputs, ..}]}; with the canonical form {written}"},
      .context = ContextUse::kCheckpoints,
      .run = run_plan_operation,
      .print = print_plans});
}

}  // namespace ggufmill
