// Tests of adapters and their bases. tests/golden compares the results with convert_lora_to_gguf.py.
#include "stages/huggingface/adapter_conversion.h"

#include "stages/huggingface/conversion.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

using Dims = std::vector<std::uint64_t>;  // row length first

CheckpointTensor tensor(std::string name, const Dims& dims) {
  Shape shape;
  for (const std::uint64_t dim : dims) shape.dims[shape.rank++] = dim;
  std::vector<float> values(shape.elements());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return {std::move(name), expressions::constant(shape, std::move(values)).value(), {dims.rbegin(), dims.rend()}};
}

}  // namespace

TEST_CASE("an adapter for weights of another shape belongs to another base") {
  const TempDir adapter;
  const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.";
  write_text(adapter.file("adapter_config.json"), R"({"lora_alpha": 4, "r": 2})");
  write_text(adapter.file("adapter_model.safetensors"), "");
  const TempDir base;
  write_text(base.file("config.json"),
             R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 8,
                 "num_attention_heads": 2, "intermediate_size": 8, "rms_norm_eps": 1e-5,
                 "max_position_embeddings": 64})");
  write_text(base.file("model.safetensors"), "");
  AdapterOptions options;
  options.adapter = adapter.path();
  options.base = base.path();
  options.class_defaults = false;
  const auto converted = read_huggingface_adapter(options, [&](const std::string& path) -> Result<Checkpoint> {
    if (!path.starts_with(base.path().string()))
      return Checkpoint{{}, {tensor(name + "lora_A.weight", {4, 2}), tensor(name + "lora_B.weight", {2, 6})}};
    return Checkpoint{{}, {tensor("model.layers.0.self_attn.q_proj.weight", {8, 8})}};
  });
  REQUIRE_FALSE(converted);
  CHECK(converted.error().what ==
        "the adapter changes 'model.layers.0.self_attn.q_proj.weight' of 4 x 6, but the base's is 8 x 8");
}
