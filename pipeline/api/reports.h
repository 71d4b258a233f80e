#pragma once
// Reports of runs and comparisons as data, and the files that a run writes beside its outputs.

#include <string>
#include <vector>

#include "pipeline/graph/engine.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/report.h"

namespace ggufmill {

// How many tensors have another type than was wanted, as their rows are no whole blocks of it, and which types took its
// place: one line, empty where there are none.
std::string describe_fallbacks(const PlannedOutput& output);

std::vector<ReportFile> files_of(const std::vector<SourceRef>& sources);
// The facts of the model that a report gives.
void describe_source(const PlannedSource& source, Report& report);
// `isa`: of the kernels that ran.
Report report_of(const Plan& plan, const RunReport& run, const std::string& isa);

// Both write whole files or nothing. What is there is not replaced without `overwrite`. That they are no inputs is
// checked before a run: see find_problems().
Status write_text(const std::string& path, const std::string& text, bool overwrite);
// In the forms that have a path.
Status write_report(const Report& report, const std::string& json, const std::string& html, bool overwrite);

}  // namespace ggufmill
