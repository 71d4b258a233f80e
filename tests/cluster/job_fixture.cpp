#include "tests/cluster/job_fixture.h"

#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/safetensors_builder.h"

namespace ggufmill::testing {
namespace {

// Returns values that differ from tensor to tensor.
std::string values_of(std::size_t count, std::size_t tensor) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * 2654435761U + tensor * 977) % 4093) / 4096.0F - 0.5F;
  return float_bytes(values);
}

}  // namespace

const Context& context() {
  static const Context one = Context::create({{}, "reference"}).value();
  return one;
}

JobFolder::JobFolder(SourceKind source, const std::string& more) : source_(source), more_(more) {
  source == SourceKind::kGguf ? write_gguf() : write_checkpoint();
}

void JobFolder::write_gguf() const {
  GgufBuilder model;
  for (int i = 0; i < 8; ++i) {
    model.add_tensor(fmt::format("blk.{}.attn_norm.weight", i), {512});
    model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {512, i % 3 == 0 ? 1500ULL : 900ULL});
  }
  for (std::size_t t = 0; t < model.tensors.size(); ++t)
    model.tensors[t].data = values_of(model.tensors[t].data.size() / 4, t);
  model.write(path("model.gguf"));
}

void JobFolder::write_checkpoint() const {
  fs::create_directory(path("checkpoint"));
  const auto put = [&](const std::string& name, const std::string& text) {
    write_text(path("checkpoint/" + name), text);
  };
  put("config.json",
      R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 256, "num_attention_heads": 4,
          "num_hidden_layers": 6, "vocab_size": 5, "intermediate_size": 1200, "rms_norm_eps": 1e-5,
          "max_position_embeddings": 16})");
  put("tokenizer.json",
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4}, "merges": ["a b"]},
          "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})");
  put("tokenizer_config.json", R"({"model_max_length": 16})");
  std::vector<SafetensorsTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> dims) {
    std::size_t count = 1;
    for (const std::uint64_t dim : dims) count *= dim;
    tensors.push_back({"model." + name + ".weight", "F32", std::move(dims), values_of(count, tensors.size())});
  };
  add("embed_tokens", {5, 256});
  add("norm", {256});
  for (int i = 0; i < 6; ++i) {
    const auto in_layer = [&](const std::string& name) { return fmt::format("layers.{}.{}", i, name); };
    add(in_layer("input_layernorm"), {256});
    add(in_layer("post_attention_layernorm"), {256});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(in_layer(fmt::format("self_attn.{}", name)), {256, 256});
    add(in_layer("mlp.gate_proj"), {1200, 256});
    add(in_layer("mlp.up_proj"), {1200, 256});
  }
  put("model.safetensors", safetensors_bytes(tensors));
}

std::string JobFolder::pipeline(const std::string& folder) const {
  const std::string source =
      source_ == SourceKind::kGguf
          ? "gguf: " + path("model.gguf")
          : fmt::format("huggingface: {{path: {}, pre: llama-bpe, allow_missing: true}}", path("checkpoint"));
  return fmt::format(
      "version: 1\nsource: {{{0}}}\noutputs:\n"
      "  - {{gguf: {1}/single.gguf, quantize: {{type: Q8_0}}}}\n"
      "  - {{gguf: {{path: {1}/shards.gguf, shard_size: 8M}}}}\n"
      "  - {{gguf: {1}/half.gguf, quantize: {{type: F16}}}}\n{2}",
      source, path(folder), more_);
}

Plan JobFolder::plan(const std::string& folder) const {
  const auto job = context().parse_job(pipeline(folder), path("job.yaml"));
  if (!job) FAIL(render(job.error()));
  auto plan = context().plan(job.value());
  if (!plan) FAIL(render(plan.error()));
  return std::move(plan).value();
}

ClusterJob JobFolder::job(const Plan& plan, unsigned parts) const {
  SubmitOptions options;
  options.cluster.parts = parts;
  options.cluster.folder = path("job");
  auto job = make_job(plan, options);
  if (!job) FAIL(render(job.error()));
  if (const Status made = create_job(job.value(), plan); !made) FAIL(render(made.error()));
  // Load it as the parts do.
  auto found = load_job_folder(path("job"));
  if (!found) FAIL(render(found.error()));
  return std::move(found).value();
}

std::map<std::string, std::string> JobFolder::files(const std::string& folder) const {
  std::map<std::string, std::string> files;
  for (const std::string& name : names_in(path(folder)))
    if (!name.starts_with(".")) files[name] = read_text(path(folder) + "/" + name);
  return files;
}

std::map<std::string, std::string> JobFolder::right() const {
  const auto run = context().run(plan("right"), {});
  if (!run) FAIL(render(run.error()));
  return files("right");
}

PartOutcome do_part(const ClusterJob& job, const Plan& plan, std::size_t part) {
  PartOptions options;
  options.part = part;
  auto outcome = run_part(context(), job, plan, options);
  if (!outcome) FAIL(render(outcome.error()));
  return std::move(outcome).value();
}

void do_parts(const ClusterJob& job, const Plan& plan) {
  for (std::size_t part = 0; part < job.parts(); ++part) do_part(job, plan, part);
}

SealOutcome do_seal(const ClusterJob& job, const Plan& plan) {
  auto outcome = seal(context(), job, plan, {});
  if (!outcome) FAIL(render(outcome.error()));
  return std::move(outcome).value();
}

Error seal_error(const ClusterJob& job, const Plan& plan) {
  const auto outcome = seal(context(), job, plan, {});
  REQUIRE(!outcome);
  return outcome.error();
}

}  // namespace ggufmill::testing
