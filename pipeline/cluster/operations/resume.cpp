// `resume`: resumes a cluster job.

#include "pipeline/cluster/operations/cluster_operations.h"

namespace ggufmill {
namespace {

struct ResumeRequest {
  std::string folder{}, program{};
};

struct ResumedJob : Resumed {
  ClusterArray array;
};

Result<Answer<ResumedJob>> run_resume(const Context& context, const ResumeRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, enter_plans(request.folder, context, call));
  BOOST_OUTCOME_TRY(Resumed resumed, resume_array(opened.planned, program_on_nodes(request.program, call)));
  call.warn_all(resumed.warnings);
  if (resumed.was_sealed) call.note({"the outputs are already sealed"});
  note_started({opened.planned.array, resumed.parts, resumed.submitted}, call);
  return Answer<ResumedJob>{{std::move(resumed), opened.planned.array}};
}

}  // namespace

OperationSpec resume_operation() {
  namespace json = boost::json;
  return operation(OperationOf<ResumeRequest, ResumedJob>{
      .name = "resume",
      .group = OperationGroup::kCluster,
      .summary = "Resume a cluster job that stopped",
      .description = "Resume a cluster job that is not running: submit its unfinished parts, and a new seal, to its "
                     "engine. Each part continues from its last attempt.",
      .examples = "  ggufmill resume llama.job",
      .options = {option("folder", &ResumeRequest::folder, path(), "the folder of the job").word("FOLDER"),
                  option("program", &ResumeRequest::program, path(),
                         "path of the program `ggufmill` on the nodes; default: this program, or `ggufmill`")},
      .result = {{result<ResumedJob>(
                      "was_sealed", [](const ResumedJob& it) { return std::optional<json::value>(it.was_sealed); },
                      "true if there was nothing to do"),
                  result<ResumedJob>(
                      "parts", [](const ResumedJob& it) { return std::optional(json::value_from(it.parts)); },
                      "the numbers of the parts that were started, or are to be started"),
                  result<ResumedJob>(
                      "submitted",
                      [](const ResumedJob& it) { return std::optional(describe_submission(it.submitted)); },
                      "Slurm's numbers: {parts, indices, seal}; null with the engine `none`, whose parts the user "
                      "starts")}},
      .context = ContextUse::kNone,
      .run = run_resume,
      .print = [](const ResumedJob& it, TextOutput& to) {
        if (!it.was_sealed && !it.submitted) to.out = how_to_start(it.array, it.parts);
      }});
}

}  // namespace ggufmill
