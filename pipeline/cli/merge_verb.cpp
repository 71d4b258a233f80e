// `ggufmill merge`: merges the shards of a model into one file, with the arguments of llama-gguf-split --merge.

#include <fmt/format.h>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/llama_cpp/split_pipeline.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec merge_command() {
  CommandSpec spec;
  spec.usage = "ggufmill merge [options] FIRST-SHARD OUTPUT";
  spec.description =
      "Merge the shards of a model into one file, with the same bytes as llama-gguf-split --merge, which keeps the "
      "keys split.* and sets split.count to 0. With --clean, these keys are omitted, so the file is the same as before "
      "it was split. --delete-splits removes the shards once the file is complete.";
  spec.examples = "  ggufmill merge model-00001-of-00003.gguf model.gguf";
  spec.positional = "words";
  spec.many = true;
  auto add = spec.options.add_options();
  add("clean", "omit the keys split.*");
  add("delete-splits", "remove the shards once the file is complete");
  add("emit-pipeline", "print the equivalent pipeline file and exit");
  add("overwrite", "replace an existing file");
  add_kernel_options(spec.options);
  add_run_options(spec.options);
  return spec;
}

// Refuses shards that are links, as in the hub's cache: removing them would keep their data, and break the cache.
Status check_removable(const Plan& plan) {
  for (const SourceRef& shard : plan.sources) {
    std::error_code ignored;
    if (!fs::is_symlink(shard->path, ignored)) continue;
    return usage_error(
        fmt::format("--delete-splits would remove {}, which is a link to {}, and not the data",
                    quoted_name(shard->path), quoted_name(fs::read_symlink(shard->path, ignored).string())),
        "omit --delete-splits; for a model in the hub's cache, remove it there afterwards, with `hf cache`");
  }
  return ok();
}

int remove_shards(const Plan& plan) {
  for (const SourceRef& shard : plan.sources) {
    std::error_code error;
    fs::remove(shard->path, error);
    if (error) return fail(io_error(shard->path, "remove the shard", error.value()));
  }
  return 0;
}

int merge_verb(const Parsed& parsed) {
  name_options();
  const po::variables_map& values = parsed.values;
  const auto words = values["words"].as<Strings>();
  if (words.size() != 2)
    return fail(usage_error("expected two names: FIRST-SHARD and OUTPUT", "usage: " + merge_command().usage));
  if (values.count("delete-splits") && values.count("discard"))
    return fail(usage_error("--delete-splits and --discard cannot be used together",
                            "--discard writes no output, so the shards would be the only copy"));
  const std::string pipeline = merge_pipeline(words[0], words[1], values.count("clean") > 0);
  if (values.count("emit-pipeline")) {
    std::fputs(pipeline.c_str(), stdout);
    return 0;
  }
  auto context = open_context(values);
  if (!context) return fail(context.error());
  const auto planned = plan_arguments(std::move(context).value(), pipeline, {}, values);
  if (!planned) return fail(planned.error());
  if (values.count("delete-splits"))
    if (const Status removable = check_removable(planned.value().plan); !removable) return fail(removable.error());
  const int code = execute(planned.value(), values, values.count("overwrite") > 0);
  return code == 0 && values.count("delete-splits") ? remove_shards(planned.value().plan) : code;
}

}  // namespace

const Verb kMergeVerb{"merge", OperationGroup::kEdit,
                      "Merge the shards of a model into one file, as llama-gguf-split does", merge_command, merge_verb};

}  // namespace ggufmill
