// Converts adapters created here, and merges them into checkpoints and GGUF files.

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Floats = std::vector<float>;

constexpr std::uint64_t kHidden = 64, kInner = 96, kTokens = 5, kRank = 4;

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1,
        "vocab_size": 5, "intermediate_size": 96, "rms_norm_eps": 1e-5, "max_position_embeddings": 16})";
constexpr const char* kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4}, "merges": ["a b"]},
        "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})";

// Returns values without a pattern.
Floats scattered(std::size_t count, int seed) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::sin(static_cast<float>(seed) + 37.0f * static_cast<float>(i));
  return values;
}

// `dims`: as in the file, rows first.
SafetensorsTensor tensor(const std::string& name, const std::vector<std::uint64_t>& dims, int seed) {
  std::size_t elements = 1;
  for (const std::uint64_t dim : dims) elements *= dim;
  const Floats values = scattered(elements, seed);
  return {name, "F32", dims, std::string(reinterpret_cast<const char*>(values.data()), elements * sizeof(float))};
}

// A tiny checkpoint and a PEFT adapter for its queries, one matrix of its feed-forward network, and its embedding.
struct Bench {
  TempDir folder;
  std::string base = folder.file("base"), adapter = folder.file("adapter");

  Bench() {
    fs::create_directories(base);
    fs::create_directories(adapter);
    write_text(base + "/config.json", kConfig);
    write_text(base + "/tokenizer.json", kTokenizer);
    write_text(base + "/tokenizer_config.json", R"({"model_max_length": 16})");
    write_text(base + "/model.safetensors",
               safetensors_bytes({tensor("model.embed_tokens.weight", {kTokens, kHidden}, 1),
                                  tensor("model.norm.weight", {kHidden}, 2),
                                  tensor("model.layers.0.input_layernorm.weight", {kHidden}, 11),
                                  tensor("model.layers.0.post_attention_layernorm.weight", {kHidden}, 12),
                                  tensor("model.layers.0.self_attn.q_proj.weight", {kHidden, kHidden}, 3),
                                  tensor("model.layers.0.mlp.up_proj.weight", {kInner, kHidden}, 4)}));
    give(8);
  }
  void give(int alpha) const {
    const std::string module = "base_model.model.model.", q = module + "layers.0.self_attn.q_proj.lora_",
                      up = module + "layers.0.mlp.up_proj.lora_", embedding = module + "embed_tokens.lora_embedding_";
    write_text(adapter + "/adapter_config.json", fmt::format(R"({{"lora_alpha": {}, "r": {}}})", alpha, kRank));
    write_text(adapter + "/adapter_model.safetensors",
               safetensors_bytes(
                   {tensor(q + "A.weight", {kRank, kHidden}, 5), tensor(q + "B.weight", {kHidden, kRank}, 6),
                    tensor(up + "A.weight", {kRank, kHidden}, 7), tensor(up + "B.weight", {kInner, kRank}, 8),
                    tensor(embedding + "A", {kRank, kTokens}, 9), tensor(embedding + "B", {kHidden, kRank}, 10)}));
  }
  std::string checkpoint() const {
    return fmt::format("{{huggingface: {{path: {}, outtype: f32, pre: default, allow_missing: true}}}}", base);
  }
};

// Runs a pipeline and returns the path of its output.
std::string run(const Bench& bench, const std::string& name, const std::string& source, const std::string& adapter = {},
                int threads = 2) {
  const std::string out = bench.folder.file(name);
  const auto context = Context::create();
  REQUIRE(context);
  const std::string stages = adapter.empty() ? "" : fmt::format("stages: [{{lora: {{adapter: {}}}}}]\n", adapter);
  const auto job = context.value().parse_job(
      fmt::format("version: 1\nsource: {}\n{}outputs: [{{gguf: {}}}]\nlimits: {{threads: {}}}\n", source, stages, out,
                  threads),
      "test.yaml");
  if (!job) FAIL(render(job.error()));
  const auto plan = context.value().plan(job.value());
  if (!plan) FAIL(render(plan.error()));
  if (const auto report = context.value().run(plan.value(), {}); !report) FAIL(render(report.error()));
  return out;
}

// Returns the plan of merging the adapter into the checkpoint.
Plan merging(const Bench& bench) {
  const auto context = Context::create();
  REQUIRE(context);
  const auto job = context.value().parse_job(
      fmt::format("version: 1\nsource: {}\nstages: [{{lora: {{adapter: {}}}}}]\noutputs: [{{gguf: {}}}]\n",
                  bench.checkpoint(), bench.adapter, bench.folder.file("out.gguf")),
      "test.yaml");
  REQUIRE(job);
  auto plan = context.value().plan(job.value());
  if (!plan) FAIL(render(plan.error()));
  return std::move(plan).value();
}

Floats floats(const std::string& path, const std::string& name) {
  const auto context = Context::create();
  const auto model = context.value().inspect(path);
  REQUIRE(model);
  for (const Tensor& each : model.value().tensors)
    if (each.name == name) {
      const Extent& extent = *each.expression->as_extent();
      const std::string bytes = read_text(path).substr(extent.offset, extent.bytes);
      Floats values(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    }
  FAIL("no tensor " << name);
  return {};
}

// Fails if a value is more than one float away from the exact one.
void check_close(float value, double exact) {
  const float up = std::nextafter(value, INFINITY), down = std::nextafter(value, -INFINITY);
  CAPTURE(value, exact);
  REQUIRE((down <= exact && exact <= up));
}

}  // namespace

TEST_CASE("an adapter is merged with the map that the source names") {
  const Bench bench;
  const std::string map = bench.folder.file("mine.yaml"), config = bench.base + "/config.json";
  write_text(map, "name: llama\ndescription: d\nextends: llama\nserves: [MineForCausalLM]\n");
  std::string text = read_text(config);
  text.replace(text.find("LlamaForCausalLM"), 16, "MineForCausalLM");
  const std::string built_in = run(bench, "built_in.gguf", bench.checkpoint(), bench.adapter);
  write_text(config, text);
  const std::string source =
      fmt::format("{{huggingface: {{path: {}, outtype: f32, pre: default, allow_missing: true, architecture: {}}}}}",
                  bench.base, map);
  CHECK(read_text(run(bench, "mine.gguf", source, bench.adapter)) == read_text(built_in));
}

TEST_CASE("a PEFT adapter is merged into the checkpoint that is being converted") {
  const Bench bench;
  const Floats merged = floats(run(bench, "out.gguf", bench.checkpoint(), bench.adapter), "blk.0.ffn_up.weight");
  const Floats w = scattered(kInner * kHidden, 4), a = scattered(kRank * kHidden, 7), b = scattered(kInner * kRank, 8);
  for (std::size_t i = 0; i < w.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < kRank; ++k)
      sum += static_cast<double>(b[i / kHidden * kRank + k]) * a[k * kHidden + i % kHidden];
    check_close(merged[i], w[i] + 2 * sum);
  }
}

TEST_CASE("the pair of an embedding is merged transposed") {
  const Bench bench;
  const Floats merged = floats(run(bench, "out.gguf", bench.checkpoint(), bench.adapter), "token_embd.weight");
  const Floats w = scattered(kTokens * kHidden, 1), a = scattered(kRank * kTokens, 9),
               b = scattered(kHidden * kRank, 10);
  for (std::size_t i = 0; i < w.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < kRank; ++k)
      sum += static_cast<double>(b[i % kHidden * kRank + k]) * a[k * kTokens + i / kHidden];
    check_close(merged[i], w[i] + 2 * sum);
  }
}

TEST_CASE("an adapter in GGUF is merged with the same result as that of PEFT") {
  const Bench bench;
  const std::string at_once = run(bench, "merged.gguf", bench.checkpoint(), bench.adapter);
  const std::string model = run(bench, "model.gguf", bench.checkpoint());
  const std::string adapter =
      run(bench, "adapter.gguf", fmt::format("{{lora: {{adapter: {}, base: {}}}}}", bench.adapter, bench.base));
  const std::string later = run(bench, "later.gguf", fmt::format("{{gguf: {}}}", model), adapter);
  for (const char* const name :
       {"token_embd.weight", "blk.0.attn_q.weight", "blk.0.ffn_up.weight", "output_norm.weight"})
    CHECK(floats(at_once, name) == floats(later, name));
}

TEST_CASE("the number of threads does not change a merged model") {
  const Bench bench;
  CHECK(read_text(run(bench, "one.gguf", bench.checkpoint(), bench.adapter, 1)) ==
        read_text(run(bench, "four.gguf", bench.checkpoint(), bench.adapter, 4)));
}

TEST_CASE("another alpha of the adapter makes another run") {
  const Bench bench;
  const std::string before = identity_of(merging(bench));
  REQUIRE(identity_of(merging(bench)) == before);
  bench.give(16);
  CHECK(identity_of(merging(bench)) != before);
}

TEST_CASE("a plan says which tensors an adapter changes") {
  const Plan plan = merging(Bench());
  std::string merged;
  for (const PlannedTensor& each : plan.outputs[0].tensors)
    if (each.reason == "1 adapter merged") merged += each.name + " ";
  CHECK(merged == "token_embd.weight blk.0.ffn_up.weight blk.0.attn_q.weight ");
}
