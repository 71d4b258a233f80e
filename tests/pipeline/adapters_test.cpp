// LoRA adapters in the format of PEFT as sources.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

constexpr const char* kBase =
    R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4, "num_attention_heads": 1, "num_hidden_layers": 1,
        "vocab_size": 5, "intermediate_size": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 16})";
constexpr const char* kModule = "base_model.model.model.layers.0.mlp.up_proj";

SafetensorsTensor tensor(const std::string& name, const std::vector<std::uint64_t>& dims) {
  std::size_t elements = 1;
  for (const std::uint64_t dim : dims) elements *= dim;
  std::string data;
  for (std::size_t i = 0; i < elements; ++i) {
    const auto value = static_cast<float>(i + 1);
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return {name, "F32", dims, data};
}

// An adapter of rank 4 for one weight of 4 columns and 8 rows, and its base.
class Adapter {
 public:
  Adapter() {
    fs::create_directory(file("base"));
    write_text(file("base/config.json"), kBase);
    fs::create_directory(file("adapter"));
    config(R"({"peft_type": "LORA", "lora_alpha": 8, "r": 4})");
    weights({tensor(std::string(kModule).append(".lora_A.weight"), {4, 4}),
             tensor(std::string(kModule).append(".lora_B.weight"), {8, 4})});
  }
  Adapter& config(const std::string& text) {
    write_text(file("adapter/adapter_config.json"), text);
    return *this;
  }
  Adapter& weights(std::vector<SafetensorsTensor> tensors) {
    write_text(file("adapter/adapter_model.safetensors"), safetensors_bytes(std::move(tensors)));
    return *this;
  }
  std::string file(const std::string& name) const { return folder_.file(name); }

  Result<Plan> plan() const {
    BOOST_OUTCOME_TRY(const Context context, Context::create());
    BOOST_OUTCOME_TRY(
        const Job job,
        context.parse_job(
            fmt::format("version: 1\nsource: {{lora: {{adapter: {0}/adapter, base: {0}/base}}}}\noutputs: "
                        "[{{gguf: {0}/out.gguf}}]\n",
                        folder_.path().string()),
            "j.yaml"));
    return context.plan(job);
  }
  // Writes the adapter and opens the result.
  Model written() const {
    const Context context = Context::create().value();
    const auto made = plan();
    if (!made) FAIL(render(made.error()));
    const auto report = context.run(made.value(), {});
    if (!report) FAIL(render(report.error()));
    return context.inspect(file("out.gguf")).value();
  }
  std::vector<float> values(const Model& model, std::string_view name) const {
    for (const Tensor& tensor : model.tensors)
      if (tensor.name == name) {
        const Extent& extent = *tensor.expression->as_extent();
        std::vector<float> values(extent.bytes / sizeof(float));
        std::memcpy(values.data(), read_text(file("out.gguf")).data() + extent.offset, extent.bytes);
        return values;
      }
    FAIL(name);
    std::abort();
  }

 private:
  TempDir folder_;
};

double alpha_of(const Model& model) { return as_number(*model.metadata.find("adapter.lora.alpha")).value(); }

constexpr const char* kA = "blk.0.ffn_up.weight.lora_a";
constexpr const char* kB = "blk.0.ffn_up.weight.lora_b";

}  // namespace

TEST_CASE("a pair keeps its values, and alpha is that of the adapter") {
  const Adapter adapter;
  const Model model = adapter.written();
  CHECK(alpha_of(model) == 8);
  CHECK(adapter.values(model, kA)[0] == 1);
  CHECK(adapter.values(model, kB)[31] == 32);
}

TEST_CASE("the scale of rsLoRA is part of alpha") {
  Adapter adapter;
  adapter.config(R"({"peft_type": "LORA", "lora_alpha": 8, "r": 4, "use_rslora": true})");
  const Model model = adapter.written();
  CHECK(alpha_of(model) == 16);  // divided by the rank: 8 / sqrt(4)
  CHECK(adapter.values(model, kB)[31] == 32);
}

TEST_CASE("a module's own alpha scales its B") {
  Adapter adapter;
  adapter.config(R"({"peft_type": "LORA", "lora_alpha": 8, "r": 4, "alpha_pattern": {"up_proj": 2}})");
  const Model model = adapter.written();
  // Only the product of alpha and B matters.
  CHECK(alpha_of(model) * adapter.values(model, kB)[31] == 2 * 32);
  CHECK(adapter.values(model, kA)[15] == 16);
}
