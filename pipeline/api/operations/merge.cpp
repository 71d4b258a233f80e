// `merge`: merges the shards of a model into one file, with the arguments of llama-gguf-split --merge.

#include <fmt/format.h>

#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/llama_cpp/split_pipeline.h"

namespace ggufmill {
namespace {

struct MergeRequest : RunRequest {
  std::string input{}, output{};
  bool clean = false, delete_splits = false;
};

// Refuses shards that are links, as in the hub's cache: removing them would keep their data, and break the cache.
Status check_removable(const Plan& plan) {
  for (const SourceRef& shard : plan.sources) {
    std::error_code ignored;
    if (!fs::is_symlink(shard->path, ignored)) continue;
    return usage_error(
        fmt::format("{} would remove {}, which is a link to {}, and not the data", option_reference("delete_splits"),
                    quoted_name(shard->path), quoted_name(fs::read_symlink(shard->path, ignored).string())),
        fmt::format("omit {}; for a model in the hub's cache, remove it there afterwards, with `hf cache`",
                    option_reference("delete_splits")));
  }
  return ok();
}

Status remove_shards(const Plan& plan) {
  for (const SourceRef& shard : plan.sources) {
    std::error_code error;
    fs::remove(shard->path, error);
    if (error) return io_error(shard->path, "remove the shard", error.value());
  }
  return ok();
}

Status check_merge(const MergeRequest& request) {
  if (request.delete_splits && request.discard) {
    Error error = cannot_be_together("delete_splits", "discard");
    error.help = option_reference("discard") + " writes no output, so the shards would be the only copy";
    return error;
  }
  return check_run(request);
}

Result<Answer<PipelineRun>> run_merge(const Context& context, const MergeRequest& request, const Call& call) {
  PipelineHooks hooks;
  if (request.delete_splits) hooks = {.planned = check_removable, .done = remove_shards};
  return run_pipeline(context, request, merge_pipeline(request.input, request.output, request.clean), call, hooks);
}

}  // namespace

OperationSpec merge_operation() {
  using Merge = MergeRequest;
  return pipeline_operation(OperationOf<MergeRequest, PipelineRun>{
      .name = "merge",
      .group = OperationGroup::kEdit,
      .summary = "Merge the shards of a model into one file, as llama-gguf-split does",
      .description =
          "Merge the shards of a model into one file, with the same bytes as llama-gguf-split --merge, which keeps the "
          "keys split.* and sets split.count to 0. With @clean, these keys are omitted, so the file is the same as "
          "before it was split. @delete_splits removes the shards once the file is complete.",
      .examples = "  ggufmill merge model-00001-of-00003.gguf model.gguf",
      .expected_words = "two names: FIRST-SHARD and OUTPUT",
      .options =
          std::vector<Option<MergeRequest>>{
              option("input", &Merge::input, path(), "the first shard").word("FIRST-SHARD"),
              option("output", &Merge::output, path(), "the file to write").word("OUTPUT"),
              option("clean", &Merge::clean, "omit the keys split.*"),
              option("delete_splits", &Merge::delete_splits, "remove the shards once the file is complete")} +
          run_options(),
      .check = check_merge,
      .run = run_merge,
      .print = [](const PipelineRun& run, TextOutput& to) { print_run(run, true, to); }});
}

}  // namespace ggufmill
