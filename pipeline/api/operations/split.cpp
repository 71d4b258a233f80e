// `split`: splits a model into shards, with the arguments of llama-gguf-split.

#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/llama_cpp/split_pipeline.h"

namespace ggufmill {
namespace {

struct SplitRequest : SplitOptions, RunRequest {};

// A size, kept as the user wrote it.
Form<std::string> size_text() {
  Form<std::string> form;
  form.spec = bytes().at_least(1).spec;
  form.read_with([](const ConfigNode& node) { return node.scalar; });
  return form;
}

Status check_split(const SplitRequest& request) {
  if (request.split_max_size && request.split_max_tensors)
    return cannot_be_together("split_max_size", "split_max_tensors");
  return check_run(request);
}

Result<Answer<PipelineRun>> run_split(const Context& context, const SplitRequest& request, const Call& call) {
  return run_pipeline(context, request, split_pipeline(request), call);
}

}  // namespace

OperationSpec split_operation() {
  using Split = SplitOptions;
  return pipeline_operation(OperationOf<SplitRequest, PipelineRun>{
      .name = "split",
      .group = OperationGroup::kEdit,
      .summary = "Split a model into shards, as llama-gguf-split does",
      .description =
          "Split a model into shards @output-00001-of-0000N.gguf, with the same bytes as llama-gguf-split. Without a "
          "limit, no shard has more than 128 tensors. If @input is sharded, its shards are treated as one model and "
          "split again.",
      .examples = "  ggufmill split --split-max-size 20G model.gguf model\n"
                  "  ggufmill split --split-max-tensors 100 --no-tensor-first-split model.gguf model\n"
                  "  ggufmill split --dry-run --split-max-size 20G model.gguf model",
      .expected_words = "two names: INPUT and OUTPUT",
      .options = std::vector<Option<SplitRequest>>{option("input", &Split::input, path(), "the model").word("INPUT"),
                                                   option("output", &Split::output, path(),
                                                          "name of the shards without -00001-of-0000N.gguf")
                                                       .word("OUTPUT"),
                                                   option("split_max_size", &Split::split_max_size, size_text(),
                                                          "maximum bytes of tensor data per shard: 300M, 20G, 512MiB"),
                                                   option("split_max_tensors", &Split::split_max_tensors,
                                                          integer().at_least(1), "maximum number of tensors per shard"),
                                                   option("no_tensor_first_split", &Split::no_tensor_first_split,
                                                          "write only the metadata to the first shard")} +
                 run_options(),
      .check = check_split,
      .run = run_split,
      .print = [](const PipelineRun& run, TextOutput& to) { print_run(run, true, to); }});
}

}  // namespace ggufmill
