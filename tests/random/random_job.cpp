#include "tests/random/random_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ggufmill::testing {
namespace {

constexpr const char* kSharedRename = "ffn_up";  // the name that only stages of all outputs change
constexpr const char* kOwnRename = "ffn_down";   // and the one that only stages of an output change

std::string joined(const std::vector<RandomStage>& stages, const char* before, const char* after) {
  std::string text;
  for (const RandomStage& stage : stages) text += before + stage.text + after;
  return text;
}

class JobMaker {
 public:
  JobMaker(Random& random, const RandomSource& source, std::string folder)
      : random_(random), source_(source), folder_(std::move(folder)), layers_(source.layers) {}

  RandomJob make() {
    RandomJob job;
    job.source = source_.text;
    job.tensors = source_.tensors;
    job.stages = stages(10, kSharedRename, layers_);
    if (random_.percent(5)) {
      job.stages.push_back(random_quantize(random_));
      is_quantized_ = true;
    }
    const std::uint64_t outputs = random_.percent(10) ? 1 : random_.from(2, 6);
    for (std::uint64_t i = 0; i < outputs; ++i) job.outputs.push_back(output(fmt::format("o{}", i)));
    job.settings = settings();
    return job;
  }

 private:
  // Returns stages that keep types; each kind has a chance of `percent`.
  std::vector<RandomStage> stages(std::uint64_t percent, const char* renamed, unsigned& layers) {
    std::vector<RandomStage> stages;
    if (!source_.importance.empty() && random_.percent(percent)) stages.push_back(importance_stage(source_));
    if (!source_.adapter.empty() && random_.percent(percent)) stages.push_back(random_lora(random_, source_));
    if (layers > 1 && random_.percent(percent)) stages.push_back(random_prune(random_, layers));
    if (has(renamed) && random_.percent(percent))
      stages.push_back(rename_stage(renamed, std::string(renamed) + "_new"));
    if (random_.percent(percent)) stages.push_back(random_metadata(random_));
    if (stages.size() > 1 && random_.percent(10)) std::swap(stages.front(), stages.back());
    return stages;
  }

  bool has(const char* part) const {
    return std::ranges::any_of(source_.names, [&](const std::string& name) { return name.find(part) != name.npos; });
  }

  RandomOutput output(std::string name) {
    RandomOutput output;
    output.name = std::move(name);
    unsigned layers = layers_;
    output.stages = stages(20, kOwnRename, layers);
    choose_sink(output);
    const bool quantizes = !is_quantized_ && random_.percent(65);
    if (quantizes && output.kind == SinkKind::kSafetensors)
      output.stages.push_back(random_float_type(random_));  // the sink refuses other types
    else if (quantizes && source_.parts.empty() && random_.percent(8))
      output.stages.push_back(random_target(random_));
    else if (quantizes)
      output.stages.push_back(random_quantize(random_));
    ask(output);
    return output;
  }

  // Sets the part and the type that the output asks of a checkpoint.
  void ask(RandomOutput& output) {
    if (!source_.parts.empty() && random_.percent(70))
      output.more += fmt::format(", part: {}", random_.pick_from(source_.parts));
    // All outputs with a target have the same type before it.
    const bool has_target = !output.stages.empty() && output.stages.back().text.find("target") != std::string::npos;
    if (!source_.is_checkpoint || has_target || !random_.percent(30)) return;
    output.more += fmt::format(", outtype: {}", random_.pick({"f32", "f16", "bf16"}));
    output.has_known_values = false;
  }

  void choose_sink(RandomOutput& output) {
    const std::uint64_t kind = random_.below(100);
    const std::string path = folder_ + "/" + output.name;
    if (kind < 78 || (kind < 92 && is_quantized_)) {
      output.sink = fmt::format("gguf: {{path: '{}.gguf'{}}}", path, gguf_options());
    } else if (kind < 92) {
      output.kind = SinkKind::kSafetensors;
      const bool keeps = !source_.has_quantized && random_.percent(50);
      const std::string type = keeps ? "keep" : random_.pick({"f32", "f16", "bf16"});
      std::string more;
      if (random_.percent(25)) more = fmt::format(", shard_size: {}", random_.from(1000, 20000));
      if (source_.is_checkpoint && random_.percent(20)) {
        more += ", names: huggingface";
        output.has_known_values = false;
      }
      output.sink = fmt::format("safetensors: {{path: '{}', dtype: {}{}}}", path, type, more);
    } else {
      output.kind = SinkKind::kNpy;
      output.sink = fmt::format("npy: '{}'", path);
    }
  }

  std::string gguf_options() {
    std::string options;
    if (random_.percent(15))
      options += fmt::format(", shard_tensors: {}", random_.from(1, 6));
    else if (source_.largest > 0 && random_.percent(20))
      options += fmt::format(", shard_size: {}", random_.from(source_.largest, 4 * source_.largest));
    if (!options.empty() && random_.percent(15)) options += ", metadata_shard: true";
    if (!options.empty() && random_.percent(15)) options += ", shard_rule: convert";
    if (random_.percent(12)) options += ", byte_order: big";
    return options;
  }

  RunSettings settings() {
    RunSettings settings;
    settings.engine = random_.percent(70) ? EngineKind::kGraph : EngineKind::kSimple;
    settings.io = random_.percent(50) ? IoKind::kAuto : IoKind::kThreads;
    if (random_.percent(50)) settings.shuffle_seed = random_.from(1, 1000);
    if (random_.percent(50)) settings.slab_bytes = random_.pick<std::uint64_t>({1, 1000, 4096, 70000});
    settings.limits =
        fmt::format("{{memory: {}, threads: {}", random_.pick({"4MiB", "16MiB", "100MiB"}), random_.from(1, 6));
    if (random_.percent(50))
      settings.limits += fmt::format(", io: {}", random_.pick({"cached", "streaming", "direct"}));
    settings.limits += "}";
    if (random_.percent(15)) settings.report = fmt::format("{{error: true, json: '{}/report.json'}}", folder_);
    return settings;
  }

  Random& random_;
  const RandomSource& source_;
  std::string folder_;
  unsigned layers_;  // after the stages of all outputs
  bool is_quantized_ = false;
};

}  // namespace

std::string RandomJob::text(std::span<const RandomOutput> some, const RunSettings& how) const {
  std::string text = fmt::format("version: 1\nsource: {}\n", source);
  if (!stages.empty()) text += "stages:\n" + joined(stages, "  - {", "}\n");
  text += "outputs:\n";
  for (const RandomOutput& output : some)
    text += fmt::format("  - {{{}{}{}}}\n", output.sink, output.more, joined(output.stages, ", ", ""));
  if (!how.limits.empty()) text += fmt::format("limits: {}\n", how.limits);
  if (!how.report.empty()) text += fmt::format("report: {}\n", how.report);
  return text;
}

Expected RandomJob::expected(const RandomOutput& output) const {
  Expected expected;
  if (!output.has_known_values) return expected;
  expected.tensors = tensors;
  for (const RandomStage& stage : stages) stage.change(expected);
  for (const RandomStage& stage : output.stages) stage.change(expected);
  return expected;
}

RandomJob random_job(Random& random, const RandomSource& source, const std::string& folder) {
  return JobMaker(random, source, folder).make();
}

}  // namespace ggufmill::testing
