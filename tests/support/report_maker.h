#pragma once
// Reports made by hand.

#include <string>
#include <vector>

#include "pipeline/report/report.h"

namespace ggufmill::testing {

// A row of F32 that became F16 (in name: the values are as given).
ReportTensor measured_tensor(const std::string& name, const std::vector<float>& from, const std::vector<float>& to);

// The whole of a form.
std::string json_text_of(const Report& report);
std::string page_of(const Report& report);

// Of one output, from "model.gguf" to "out/model-F16.gguf".
Report report_of(std::vector<ReportTensor> tensors);

}  // namespace ggufmill::testing
