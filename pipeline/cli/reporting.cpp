#include "pipeline/cli/reporting.h"

#include <fmt/format.h>

#include "pipeline/cli/text_output.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

std::string text_of(const Metadata& metadata, const char* key) {
  const MetadataValue* value = metadata.find(key);
  return value ? std::string(as_string(*value).value_or("")) : "";
}

ReportTensor tensor_report(const Plan& plan, const Tensor& tensor, std::uint64_t bytes) {
  ReportTensor told;
  told.name = tensor.name;
  told.shape = tensor.shape;
  told.source_type = tensor.source.type;
  told.type = tensor.type;
  told.source_bytes = tensor.source.bytes;
  told.bytes = bytes;
  told.rule = tensor.reason;
  told.importance = tensor.importance != nullptr;
  if (plan.report.error) told.state = ErrorState::kExact;
  return told;
}

// Tensors in the order of the output's files; results are put in afterwards.
ReportOutput output_report(const Plan& plan, const PlannedOutput& output) {
  ReportOutput told;
  told.recipe = output.model.recipe;
  told.tensors.resize(output.model.tensors.size());
  for (const OutputFile& file : output.files) {
    told.files.push_back({file.path, file.bytes});
    for (const Placement& placement : file.tensors)
      told.tensors[placement.tensor] = tensor_report(plan, output.model.tensors[placement.tensor], placement.bytes);
  }
  return told;
}

void put_results(const Plan& plan, const RunReport& run, Report& report) {
  for (std::size_t r = 0; r < run.targets.size(); ++r)
    for (std::size_t t = 0; t < run.targets[r].size(); ++t) {
      const Target& target = plan.routes[r].targets[t];
      const TargetResult& result = run.targets[r][t];
      ReportTensor& told = report.outputs[target.output].tensors[target.tensor];
      told.seconds = result.seconds;
      if (!result.error) continue;
      told.state = ErrorState::kMeasured;
      told.sums = *result.error;
    }
}

}  // namespace

void add_report_options(po::options_description& options) {
  auto add = options.add_options();
  add("report", po::value<std::vector<std::string>>()->composing(),
      "FILE.html or FILE.json: write a report of the run; may be given twice");
  add("errors", "measure what every tensor lost, for the report (report.error)");
}

Status read_report_options(const po::variables_map& values, std::optional<ReportRequest>& report) {
  if (values.count("errors")) {
    if (!report) report.emplace();
    report->error = true;
  }
  if (!values.count("report")) return ok();
  if (!report) report.emplace();
  for (const std::string& path : values["report"].as<std::vector<std::string>>()) {
    if (!path.ends_with(".html") && !path.ends_with(".json"))
      return usage_error(fmt::format("--report {} is no .html and no .json file", quoted_name(path)),
                         "the ending says which form is meant: --report report.html");
    (path.ends_with(".html") ? report->html : report->json) = path;
  }
  return ok();
}

void describe_source(const Model& model, Report& report) {
  report.name = text_of(model.metadata, "general.name");
  report.architecture = text_of(model.metadata, "general.architecture");
  report.files = model.files;
  report.tensors = model.tensors.size();
  report.weights = weights_of(model);
  for (const Tensor& tensor : model.tensors) report.bytes += tensor.source.bytes;
}

Report report_of(const Planned& planned, const RunReport& run) {
  const Plan& plan = planned.plan;
  Report report;
  report.measured = plan.report.error;
  describe_source(plan.source, report);
  report.run = {run.seconds, run.bytes_read, run.bytes_written,     run.peak_budget,
                run.threads, run.io,         planned.kernels->isa()};
  for (const PlannedOutput& output : plan.outputs) report.outputs.push_back(output_report(plan, output));
  put_results(plan, run, report);
  return report;
}

Status write_report(const Report& report, const ReportRequest& request, const std::vector<SourceFile>& inputs,
                    bool overwrite) {
  if (!request.json.empty()) {
    const auto form = [&](const TextSink& sink) { report_json(report, sink); };
    BOOST_OUTCOME_TRY(write_pieces(request.json, form, inputs, overwrite));
  }
  if (request.html.empty()) return ok();
  const auto form = [&](const TextSink& sink) { report_html(report, sink); };
  return write_pieces(request.html, form, inputs, overwrite);
}

}  // namespace ggufmill
