// `cancel`: cancels a cluster job that is not finished.

#include <fmt/format.h>

#include "pipeline/cluster/operations/cluster_operations.h"

namespace ggufmill {
namespace {

struct CancelRequest {
  std::string folder{};
  bool discard = false;
};

struct CanceledJob {
  bool was_sealed = false, is_discarded = false;
  std::string folder{};
};

Result<Answer<CanceledJob>> run_cancel(const Context& context, const CancelRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, enter_plans(request.folder, context, call));
  BOOST_OUTCOME_TRY(const Canceled canceled, cancel_array(opened.planned, request.discard));
  return Answer<CanceledJob>{{canceled.was_sealed, request.discard, opened.planned.array.folder}};
}

void print_canceled(const CanceledJob& canceled, TextOutput& to) {
  if (canceled.is_discarded)
    to.notes.push_back(
        {canceled.was_sealed ? "removed the job; its outputs are kept" : "removed the job and its incomplete outputs"});
  else if (canceled.was_sealed)
    to.notes.push_back({"the outputs are already sealed"});
  else
    to.notes.push_back(
        {fmt::format("canceled; finished work is kept: `ggufmill resume {}` continues the job", canceled.folder)});
}

}  // namespace

OperationSpec cancel_operation() {
  return operation(OperationOf<CancelRequest, CanceledJob>{
      .name = "cancel",
      .group = OperationGroup::kCluster,
      .summary = "Cancel a cluster job",
      .description = "Cancel a cluster job. Finished work is kept, and `ggufmill resume` continues from it; with "
                     "@discard, the job and its incomplete outputs are removed.",
      .examples = "  ggufmill cancel llama.job\n"
                  "  ggufmill cancel llama.job --discard",
      .options = {option("folder", &CancelRequest::folder, path(), "the folder of the job").word("FOLDER"),
                  option("discard", &CancelRequest::discard, "remove the job and its incomplete outputs")},
      .result = {{result("was_sealed", &CanceledJob::was_sealed, "true if the outputs were complete")}},
      .context = ContextUse::kNone,
      .run = run_cancel,
      .print = print_canceled});
}

}  // namespace ggufmill
