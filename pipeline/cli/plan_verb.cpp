// `ggufmill plan`: shows what a pipeline file does to each tensor.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "pipeline/api/curve_page.h"
#include "pipeline/api/describe.h"
#include "pipeline/api/pages.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/plan/written.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec plan_command() {
  CommandSpec spec;
  spec.usage = "ggufmill plan FILE [options]";
  spec.description =
      "Show every tensor of every output: shape, type before and after, bytes, and the rule that decided; then the "
      "totals. Reads only headers and writes nothing. Problems that prevent a run are printed on stderr (exit code 2).";
  spec.examples =
      "  ggufmill plan configs/demo.yaml\n"
      "  ggufmill plan configs/demo.yaml --json\n"
      "  ggufmill plan configs/demo.yaml --written | sha256sum";
  spec.positional = "file";
  add_job_options(spec.options);
  spec.options.add_options()("json",
                             "print one JSON object: {source: {files, tensors, parts}, outputs: [{files, problems, "
                             "tensors: [{name, shape, from, to, bytes, why, "
                             "..}], weights, ..}], bytes_read, ..}; for a batch {sources: [{source, outputs, ..}]}")(
      "written", "print the plan in its canonical JSON form, which is the same on every machine")(
      "curve", "for targets: show the loss of the best choice at each size, together with the built-in recipes")(
      "html", po::value<std::string>(),
      "write an HTML page with a picture of every output, or of the curves with --curve, to this file")(
      "overwrite", "replace an existing page");
  return spec;
}

void print_totals(const PlannedOutput& output) {
  const OutputTotals totals = totals_of(output);
  std::string types;
  for (const auto& [name, count] : totals.tensors_of_type)
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, name);
  std::uint64_t file_bytes = 0;
  for (const OutputFile& file : output.files) file_bytes += file.bytes;
  fmt::print("{} weights, {} -> {} of tensors, {:.4f} bits per weight; {} on disk; {}\n", with_commas(totals.weights),
             human_bytes(totals.bytes_before), human_bytes(totals.bytes), totals.bits_per_weight(),
             human_bytes(file_bytes), types);
  if (!output.choice.empty()) fmt::print("{}\n", output.choice);
}

void print_output(const PlannedOutput& output) {
  std::vector<Row> rows;
  for (const PlannedTensor& tensor : output.tensors)
    rows.push_back({tensor.name, describe(tensor.shape), std::string(tensor.source_type->name),
                    std::string(tensor.type->name), with_commas(tensor.bytes), tensor.reason});
  fmt::print("{}{}\n", printable(title_of(output)), output.part ? fmt::format(" ({})", part_name(*output.part)) : "");
  std::fputs(render_table({name_column("tensor"),
                           whole_column("shape"),
                           whole_column("from"),
                           whole_column("to"),
                           {"bytes", Align::kRight},
                           {"why"}},
                          rows)
                 .c_str(),
             stdout);
  print_totals(output);
}

void print_text(const Plan& plan) {
  for (const PlannedOutput& output : plan.outputs) {
    if (&output != &plan.outputs.front()) std::puts("");
    print_output(output);
  }
  if (plan.source.parts.size() > 1) fmt::print("\nThe checkpoint has the parts {}.\n", list_parts(plan.source.parts));
  std::fflush(stdout);  // flush before problems are printed on stderr
}

constexpr std::size_t kCurvePoints = 25;

// Prints the points sorted by size. For recipes, also shows the loss as a multiple of that of the nearest smaller best
// choice.
void print_points(std::vector<CurvePoint> curve) {
  std::vector<Row> rows;
  std::ranges::stable_sort(curve, {}, &CurvePoint::bytes);
  double best = 0;
  for (const CurvePoint& point : curve) {
    if (point.recipe.empty()) best = point.loss;
    rows.push_back({human_bytes(point.bytes), fmt::format("{:.4g}", point.loss),
                    point.is_target ? "(this job's target)" : point.recipe,
                    point.recipe.empty() || best <= 0 ? "" : fmt::format("{:.2f}", point.loss / best)});
  }
  std::fputs(
      render_table(
          {{"tensors", Align::kRight}, {"loses", Align::kRight}, {"recipe"}, {"times the best below", Align::kRight}},
          rows)
          .c_str(),
      stdout);
}

void print_curve(const Curve& curve) {
  if (!curve.other_points.empty()) fmt::print("{}:\n", curve.encoder);
  print_points(curve.points);
  if (curve.other_points.empty()) return;
  fmt::print("\n{}:\n", curve.other_encoder);
  print_points(curve.other_points);
}

int write_page(const Context& context, const std::string& path, const std::string& page, std::vector<std::string> read,
               const po::variables_map& values) {
  const Status written = write_page(context, path, page, std::move(read), values.count("overwrite") > 0);
  if (!written) return fail(written.error());
  print_note(fmt::format("wrote {}", path));
  return 0;
}

int show_curves(const po::variables_map& values) {
  auto loaded = load_from(values);
  if (!loaded) return fail(loaded.error());
  if (loaded.value().batch.is_matrix) return fail(usage_error("--curve is not supported for a batch"));
  Job& job = loaded.value().batch.jobs.front().job;
  if (const auto taken = take_measurement(loaded.value().context, job, IfUnmeasured::kLeave, false); !taken)
    return fail(taken.error());
  std::vector<std::size_t> with_target;
  for (std::size_t i = 0; i < job.outputs.size(); ++i)
    if (std::ranges::any_of(job.outputs[i].stages, [](const auto& stage) { return target_of(*stage); }))
      with_target.push_back(i);
  if (with_target.empty())
    return fail(usage_error("no output of the job has a target, so there is no curve",
                            "set a target, for example quantize: {target: {bits: 4.5}}"));
  const auto page = text_of(values, "html");
  std::vector<std::pair<std::string, Curve>> curves;
  for (const std::size_t i : with_target) {
    const auto curve = loaded.value().context.curve(job, i, kCurvePoints);
    if (!curve) return fail(curve.error());
    if (page)
      curves.emplace_back(fmt::format("{}, output {}", job.file, i), curve.value());
    else if (values.count("json"))
      std::puts(to_json_text(describe_curve(curve.value())).c_str());
    else
      print_curve(curve.value());
  }
  if (!page) return 0;
  const auto read = loaded.value().context.inputs(job);
  return read ? write_page(loaded.value().context, *page, curve_html(curves), read.value(), values)
              : fail(read.error());
}

int plan_verb(const Parsed& parsed) {
  if (parsed.values.count("curve")) return show_curves(parsed.values);
  bool is_first = true;
  std::vector<PicturedModel> pictures;
  JsonOfPlans objects;
  const auto page = text_of(parsed.values, "html");
  std::optional<Context> context;
  std::vector<std::string> read;
  const int code = for_each_plan(parsed.values, [&](const Planned& planned) {
    const Plan& plan = planned.plan;
    std::vector<Error> problems = planned.context.problems(plan);
    if (page) {
      context = planned.context;
      for (const std::string& path : plan.input_paths()) read.push_back(path);
      for (const PlannedOutput& output : plan.outputs) pictures.push_back(pictured(output));
    } else if (parsed.values.count("written")) {
      std::puts(write_plan(plan).c_str());
    } else if (parsed.values.count("json")) {
      boost::json::object object = describe_plan(plan);
      if (planned.with_steps)
        if (const auto steps = steps_of(planned.context, *planned.with_steps, {}))
          object["steps"] = describe_steps(steps.value());
      objects.add(planned, std::move(object));
    } else {
      if (!is_first) std::puts("");
      print_text(plan);
      if (planned.with_steps) {
        std::puts("");
        if (const Status printed = print_steps(planned.context, *planned.with_steps); !printed)
          return fail(printed.error());
        std::fflush(stdout);
      }
    }
    is_first = false;
    if (!planned.measured.empty()) print_note(planned.measured);
    print_what_run_solves(problems);
    return problems.empty() ? 0 : fail(of_source(problems, planned.source));
  });
  objects.print();
  if (!page || pictures.empty()) return code;
  const int written = write_page(*context, *page, models_html(pictures), read, parsed.values);
  return code != 0 ? code : written;
}

}  // namespace

const Verb kPlanVerb{"plan", OperationGroup::kConvert,
                     "Show what a pipeline file does to each tensor without writing anything", plan_command, plan_verb};

}  // namespace ggufmill
