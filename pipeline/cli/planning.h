#pragma once
// What the verbs share that plan and run: the options that say which job, and from the arguments to a Plan.

#include <boost/json/object.hpp>
#include <boost/program_options.hpp>
#include <functional>
#include <optional>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cli/measuring.h"

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
// Exit code 2 for --dry-run beside an option that only a run can obey.
Status check_dry_run(const boost::program_options::variables_map& values);
Status read_report_options(const boost::program_options::variables_map& values, std::optional<ReportRequest>& report);

struct Planned {
  Context context;
  Plan plan;
  std::string source = {};       // that it reads, of a batch; else empty
  std::string measurement = {};  // of its targets that name none: its path; empty: there are none
};

struct Loaded {
  Context context;
  Batch batch;
};

// The pipeline file that the arguments of a verb with these options name: a batch, or one job.
Result<Loaded> load_from(const boost::program_options::variables_map& values);
// What of these options concerns a job and not its plan.
Status read_job_options(const boost::program_options::variables_map& values, Job& job);
// The errors, each on its own, with the source of a batch that they are about; empty: there is no batch.
std::vector<Error> of_source(const std::vector<Error>& errors, const std::string& source);

// Calls `verb` with the plan of each job of the pipeline file that the arguments name, and says what is wrong with the
// others. The first exit code that is not 0.
int for_each_plan(const boost::program_options::variables_map& values,
                  const std::function<int(const Planned& planned)>& verb);
// What --json prints of the plans of a pipeline file: the object of its one job, or {sources: [{source, ...}, ...]}
// with those of a batch.
class JsonOfPlans {
 public:
  void add(const Planned& planned, boost::json::object object);
  // Nothing where no plan was made of the one job.
  void print() const;

 private:
  bool is_batch_ = false;
  std::vector<boost::json::object> objects_;
};

// From a job of `context` to its plan. Says warnings. `source`: of a job of a batch.
Result<Planned> plan_job(Context context, Job job, const boost::program_options::variables_map& values,
                         IfUnmeasured if_unmeasured = IfUnmeasured::kLeave, const std::string& source = {});

// The same from arguments that a pipeline file was made of. `inputs`: files that were read for it and that it does not
// name.
Result<Planned> plan_arguments(Context context, const std::string& pipeline, std::vector<std::string> inputs,
                               const boost::program_options::variables_map& values);

// The number of a part, or of parts. Exit code 2.
Result<std::size_t> parse_part(std::string_view text);

}  // namespace ggufmill
