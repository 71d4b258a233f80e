#pragma once
// Reports of runs and comparisons as data, and the report files that a run writes next to its outputs.

#include <string>
#include <vector>

#include "pipeline/graph/engine.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/report.h"

namespace ggufmill {

// Returns one line with the number of tensors that fell back to another type because their rows are not whole blocks of
// the wanted one, and the types involved; empty if there are none.
std::string describe_fallbacks(const PlannedOutput& output);

std::vector<ReportFile> files_of(const std::vector<SourceRef>& sources);
// Fills in what a report says about the source model.
void describe_source(const PlannedSource& source, Report& report);
// Returns the report of a run; `isa` is the instruction set of the kernels that ran.
Report report_of(const Plan& plan, const RunReport& run, const std::string& isa);

// Says, for each output whose errors were requested and are not all known, how many tensors that concerns.
std::vector<std::string> unmeasured_warnings(const Report& report);

// These functions write complete files or nothing, and do not replace existing files unless `overwrite` is set.
// find_problems() checks before a run that the files are not inputs.
Status write_text(const std::string& path, const std::string& text, bool overwrite);
// Does the same for a local file that a later run trusts: nobody but this user may write to it.
Status write_own_text(const std::string& path, const std::string& text, bool overwrite);
// Writes the report in each format for which a path is given.
Status write_report(const Report& report, const std::string& json, const std::string& html, bool overwrite);

}  // namespace ggufmill
