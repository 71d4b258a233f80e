#pragma once
// Code shared by the verbs that plan and run: options that select the job, and the way from arguments to a Plan.

#include <boost/json/object.hpp>
#include <boost/program_options.hpp>
#include <functional>
#include <optional>

#include "pipeline/api/context.h"
#include "pipeline/api/publish/publish.h"
#include "pipeline/cli/measuring.h"

namespace ggufmill {

// Adds --kernel-dir and --isa; open_context() opens the library with them.
void add_kernel_options(boost::program_options::options_description& options);
Result<Context> open_context(const boost::program_options::variables_map& values);
// Adds --architectures, whose maps open_context() adds to the built-in ones.
void add_architectures_option(boost::program_options::options_description& options);

// Adds --set, --param, --architectures, --kernel-dir and --isa.
void add_job_options(boost::program_options::options_description& options);
// Adds --report and --errors. read_report_options() adds their values to what the pipeline file requests; it fails with
// exit code 2 for a file that is neither .json nor .html.
void add_report_options(boost::program_options::options_description& options);
// Fails with exit code 2 if --dry-run is combined with an option that requires a run.
Status check_dry_run(const boost::program_options::variables_map& values);
Status read_report_options(const boost::program_options::variables_map& values, std::optional<ReportRequest>& report);

struct Planned {
  Context context;
  Plan plan;
  std::string source = {};                  // source of the job in a batch; else empty
  std::string measured = {};                // a note about the measurement of its targets, see take_measurement()
  std::optional<BatchJob> with_steps = {};  // the job, if it is to be run by publish()
};

struct Loaded {
  Context context;
  Batch batch;
};

// Loads the pipeline file named by the arguments of a verb with these options: a batch, or one job.
Result<Loaded> load_from(const boost::program_options::variables_map& values);
// Applies those options that affect a job but not its plan.
Status read_job_options(const boost::program_options::variables_map& values, Job& job);

// Calls `verb` with the plan of each job in the pipeline file that the arguments name, and prints the errors of jobs
// that cannot be planned. Returns the first nonzero exit code, or 0.
int for_each_plan(const boost::program_options::variables_map& values,
                  const std::function<int(const Planned& planned)>& verb);
// Collects and prints the --json output for the plans of a pipeline file: the object of its only job, or for a batch
// {sources: [{source, ...}, ...]} with the objects of all jobs.
class JsonOfPlans {
 public:
  void add(const Planned& planned, boost::json::object object);
  // Prints nothing if there are no plans, for example because the only job could not be planned.
  void print() const;

 private:
  bool is_batch_ = false;
  std::vector<boost::json::object> objects_;
};

// Plans a job of `context` and prints warnings. `source`: the job's source in a batch; else empty.
Result<Planned> plan_job(Context context, Job job, const boost::program_options::variables_map& values,
                         IfUnmeasured if_unmeasured = IfUnmeasured::kLeave, const std::string& source = {});

// Plans the pipeline that a verb generated from its arguments. `inputs`: files that were read to generate it and that
// it does not name.
Result<Planned> plan_arguments(Context context, const std::string& pipeline, std::vector<std::string> inputs,
                               const boost::program_options::variables_map& values);

// Parses the number of a part, or a number of parts. Fails with exit code 2.
Result<std::size_t> parse_part(std::string_view text);

}  // namespace ggufmill
