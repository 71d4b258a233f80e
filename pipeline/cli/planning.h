#pragma once
// What the verbs share that plan and run: the options that say which job, and from the arguments to a Plan.

#include <boost/program_options.hpp>
#include <optional>

#include "pipeline/api/ggufmill.h"

namespace ggufmill {

// --kernel-dir and --isa, and the library with them.
void add_kernel_options(boost::program_options::options_description& options);
Result<Context> open_context(const boost::program_options::variables_map& values);

// --outtype of the verbs that read models, checkpoint folders too. Exit code 2 for a word that is none.
void add_out_type_option(boost::program_options::options_description& options);
Result<huggingface::OutType> read_out_type(const boost::program_options::variables_map& values);

// --set, --param, --kernel-dir and --isa.
void add_job_options(boost::program_options::options_description& options);
// --report and --errors, and what they add to what the pipeline file asks for. Exit code 2 for a file that is neither
// .json nor .html.
void add_report_options(boost::program_options::options_description& options);
Status read_report_options(const boost::program_options::variables_map& values, std::optional<ReportRequest>& report);

struct Planned {
  Context context;
  Plan plan;
};

// From the arguments of a verb with these options, or of those that it has of them. Says warnings.
Result<Planned> plan_from(const boost::program_options::variables_map& values);
// The same from a job of `context` on.
Result<Planned> plan_job(Context context, Job job, const boost::program_options::variables_map& values);

// The same from arguments that a pipeline file was made of. `inputs`: files that were read for it and that it does not
// name.
Result<Planned> plan_arguments(Context context, const std::string& pipeline, std::vector<std::string> inputs,
                               const boost::program_options::variables_map& values);

}  // namespace ggufmill
