#pragma once
// Reports as files: of a run, from its plan and what was measured.

#include "pipeline/cli/planning.h"
#include "pipeline/graph/engine.h"
#include "pipeline/report/report.h"

namespace ggufmill {

// --report and --errors.
void add_report_options(boost::program_options::options_description& options);
// What these options add to what the pipeline file asks for. Exit code 2 for a file that is neither .json nor .html.
Status read_report_options(const boost::program_options::variables_map& values, std::optional<ReportRequest>& report);

// The facts of the model that a report tells about.
void describe_source(const Model& model, Report& report);
Report report_of(const Planned& planned, const RunReport& run);

// Each form that has a path, whole or not at all. `inputs` must not be among the paths.
Status write_report(const Report& report, const ReportRequest& request, const std::vector<SourceFile>& inputs,
                    bool overwrite);

}  // namespace ggufmill
