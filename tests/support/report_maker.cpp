#include "tests/support/report_maker.h"

namespace ggufmill::testing {

ReportTensor measured_tensor(const std::string& name, const std::vector<float>& from, const std::vector<float>& to) {
  ReportTensor tensor;
  tensor.name = name;
  tensor.shape.rank = 1;
  tensor.shape.dims[0] = from.size();
  tensor.source_type = &type_named("F32");
  tensor.type = &type_named("F16");
  tensor.source_bytes = 4 * from.size();
  tensor.bytes = 2 * from.size();
  tensor.rule = "by hand";
  tensor.state = ErrorState::kMeasured;
  DifferenceSums sums;
  sums.add_rows(from, to, from.size(), nullptr);
  tensor.sums = sums.rounded();
  return tensor;
}

std::string json_text_of(const Report& report) {
  std::string text;
  report_json(report, [&](std::string_view piece) { text += piece; });
  return text;
}

std::string page_of(const Report& report) {
  std::string text;
  report_html(report, [&](std::string_view piece) { text += piece; });
  return text;
}

Report report_of(std::vector<ReportTensor> tensors) {
  Report report;
  report.measured = true;
  report.name = "by hand";
  report.files = {{"model.gguf", 1000}};
  report.tensors = tensors.size();
  for (const ReportTensor& tensor : tensors) {
    report.weights += tensor.shape.elements();
    report.bytes += tensor.source_bytes;
  }
  report.outputs.push_back({{{"out/model-F16.gguf", 600}}, "F16", std::move(tensors), {}});
  return report;
}

}  // namespace ggufmill::testing
