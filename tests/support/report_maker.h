#pragma once
// Reports for tests, created without a run.

#include <string>
#include <vector>

#include "pipeline/report/report.h"

namespace ggufmill::testing {

// Returns a row of F32 labelled as converted to F16; the values of `to` are used as given, without rounding to F16.
ReportTensor measured_tensor(const std::string& name, const std::vector<float>& from, const std::vector<float>& to);

// Return the complete report in that format.
std::string json_text_of(const Report& report);
std::string page_of(const Report& report);

// Returns a report with one output, from "model.gguf" to "out/model-F16.gguf".
Report report_of(std::vector<ReportTensor> tensors);

}  // namespace ggufmill::testing
