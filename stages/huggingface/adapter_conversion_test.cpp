// Tests of adapters and their bases. tests/golden compares the results with convert_lora_to_gguf.py.
#include "stages/huggingface/adapter_conversion.h"

#include <fmt/format.h>

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

// The halves of a product for a weight of 4 x 6.
std::vector<CheckpointTensor> pair_of(const std::string& weight) {
  const std::string name = "base_model.model." + weight;
  return {tensor(name + ".lora_A.weight", {4, 2}), tensor(name + ".lora_B.weight", {2, 6})};
}

// Returns the error of converting an adapter with a base of one layer, whose weight has these dimensions.
Error fault_of_base(const std::vector<CheckpointTensor>& tensors, const Dims& dims) {
  const TempDir adapter, base;
  write_text(adapter.file("adapter_config.json"), R"({"lora_alpha": 4, "base_model_name_or_path": "my/base"})");
  write_text(adapter.file("adapter_model.safetensors"), "");
  write_text(base.file("config.json"),
             R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 8,
                 "num_attention_heads": 2, "intermediate_size": 8, "rms_norm_eps": 1e-5,
                 "max_position_embeddings": 64})");
  write_text(base.file("model.safetensors"), "");
  AdapterOptions options;
  options.adapter = adapter.path();
  options.base = base.path();
  const auto converted =
      read_huggingface_adapter(options, [&](const std::string& path, const MissingFiles&) -> Result<Checkpoint> {
        if (!path.starts_with(base.path().string())) return Checkpoint{{}, tensors};
        return Checkpoint{{}, {tensor("model.layers.0.self_attn.q_proj.weight", dims)}};
      });
  REQUIRE_FALSE(converted);
  CHECK(converted.error().help ==
        fmt::format("check that {} is the model that the adapter was trained for ('my/base')", base.path().string()));
  return converted.error();
}

}  // namespace

TEST_CASE("an adapter for weights of another shape belongs to another base") {
  const auto [dims, shape] = GENERATE(std::pair(Dims{8, 8}, "8 x 8"), std::pair(Dims{6, 4}, "6 x 4"));
  CHECK(fault_of_base(pair_of("model.layers.0.self_attn.q_proj"), dims).what ==
        fmt::format("the adapter changes 'model.layers.0.self_attn.q_proj.weight' of 4 x 6, but the base's is {}",
                    shape));
}

TEST_CASE("an adapter for layers that the base does not have is one error") {
  std::vector<CheckpointTensor> tensors = pair_of("model.layers.1.self_attn.q_proj");
  for (CheckpointTensor& each : pair_of("model.layers.2.self_attn.q_proj")) tensors.push_back(std::move(each));
  const Error error = fault_of_base(tensors, {4, 6});
  CHECK(error.what ==
        "config.json says 1 layer, but the weights have 3 layers: 2 of 2 tensors are beyond, such as "
        "'model.layers.1.self_attn.q_proj.weight', 'model.layers.2.self_attn.q_proj.weight'");
  CHECK(error.detail.empty());
  CHECK(error.also.empty());
}
