// `ggufmill split`: splits a model into shards, with the arguments of llama-gguf-split.

#include <fmt/format.h>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/llama_cpp/split_pipeline.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec split_command() {
  CommandSpec spec;
  spec.usage = "ggufmill split [options] INPUT OUTPUT";
  spec.description =
      "Split a model into shards OUTPUT-00001-of-0000N.gguf, with the same bytes as llama-gguf-split. Without a limit, "
      "no shard has more than 128 tensors. A sharded INPUT is treated as one model and split again.";
  spec.examples =
      "  ggufmill split --split-max-size 20G model.gguf model\n"
      "  ggufmill split --split-max-tensors 100 --no-tensor-first-split model.gguf model\n"
      "  ggufmill split --dry-run --split-max-size 20G model.gguf model";
  spec.positional = "words";
  spec.many = true;
  add_arguments(spec.options, split_arguments());
  auto add = spec.options.add_options();
  add("dry-run", "list the shards without writing anything");
  add("emit-pipeline", "print the equivalent pipeline file and exit");
  add("overwrite", "replace existing shards");
  add_kernel_options(spec.options);
  add_run_options(spec.options);
  return spec;
}

void list_shards(const Plan& plan) {
  for (const OutputFile& file : plan.outputs.front().files)
    fmt::print("{}  {}, {}\n", printable(file.path), counted(file.tensors.size(), "tensor"), human_bytes(file.bytes));
}

int split_verb(const Parsed& parsed) {
  name_options();
  const po::variables_map& values = parsed.values;
  const auto words = values["words"].as<Strings>();
  if (words.size() != 2)
    return fail(usage_error("expected two names: INPUT and OUTPUT", "usage: " + split_command().usage));
  if (const Status usable = check_dry_run(values); !usable) return fail(usable.error());
  SplitOptions options{.input = words[0], .output = words[1]};
  read_arguments(values, split_arguments(), options);
  const auto pipeline = split_pipeline(options);
  if (!pipeline) return fail(pipeline.error());
  if (values.count("emit-pipeline")) {
    std::fputs(pipeline.value().c_str(), stdout);
    return 0;
  }
  auto context = open_context(values);
  if (!context) return fail(context.error());
  const auto planned = plan_arguments(std::move(context).value(), pipeline.value(), {}, values);
  if (!planned) return fail(planned.error());
  if (values.count("dry-run")) {
    list_shards(planned.value().plan);
    return 0;
  }
  return execute(planned.value(), values, values.count("overwrite") > 0);
}

}  // namespace

const Verb kSplitVerb{"split", OperationGroup::kEdit, "Split a model into shards, as llama-gguf-split does",
                      split_command, split_verb};

}  // namespace ggufmill
