#include "stages/huggingface/map/restored_config.h"

#include <boost/json/serialize.hpp>
#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

// A model with the tensors that decide on config.json.
class Restored {
 public:
  explicit Restored(const std::string& architecture) : prefix_(architecture + ".") {
    model_.metadata.set("general.architecture", metadata_string(architecture));
    add("token_embd.weight", {2, {64, 320, 1, 1}});
    add("output.weight", {2, {64, 320, 1, 1}});
    number("block_count", 2)
        .number("context_length", 512)
        .number("embedding_length", 64)
        .number("feed_forward_length", 96);
    number("attention.head_count", 4).number("attention.head_count_kv", 2);
    real("rope.freq_base", 10000).real("attention.layer_norm_rms_epsilon", 1e-5);
  }
  Restored& number(const std::string& key, std::uint64_t value) {
    model_.metadata.set(prefix_ + key, metadata_unsigned(MetadataType::kUint32, value));
    return *this;
  }
  Restored& real(const std::string& key, double value) {
    model_.metadata.set(prefix_ + key, metadata_float(MetadataType::kFloat32, value));
    return *this;
  }
  Restored& text(const std::string& key, const std::string& value) {
    model_.metadata.set(prefix_ + key, metadata_string(value));
    return *this;
  }
  Restored& numbers(const std::string& key, const std::vector<std::uint64_t>& values) {
    std::vector<MetadataValue> items;
    for (const std::uint64_t value : values) items.push_back(metadata_unsigned(MetadataType::kUint32, value));
    model_.metadata.set(prefix_ + key, metadata_array(MetadataType::kUint32, items));
    return *this;
  }
  Restored& without(const std::string& key) {
    model_.metadata.remove(prefix_ + key);
    return *this;
  }
  Restored& add(const std::string& name, const Shape& shape) {
    Tensor& tensor = model_.tensors.emplace_back();
    tensor.name = name;
    tensor.expression = expressions::constant(shape, std::vector<float>(shape.elements())).value();
    tensor.type = tensor.expression->type;
    return *this;
  }
  Restored& store(const std::string& name, const std::vector<float>& values, const std::string& path) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    write_text(path, bytes);
    const auto source = std::make_shared<const SourceFile>(SourceFile{path, bytes.size(), 0, 0});
    Tensor& tensor = model_.tensors.emplace_back();
    tensor.name = name;
    tensor.expression =
        expressions::extent(type_named("F32"), {1, {values.size(), 1, 1, 1}}, {source, 0, bytes.size()}).value();
    tensor.type = tensor.expression->type;
    return *this;
  }
  std::string config() const {
    const auto made = restored_config(model_, "none", {});
    return made ? boost::json::serialize(made.value().config) : "error: " + made.error().what;
  }

 private:
  std::string prefix_;
  Model model_;
};

}  // namespace

TEST_CASE("config.json is made from metadata by the rules that make metadata from it") {
  Restored llama("llama");
  llama.number("vocab_size", 320).number("rope.dimension_count", 16);
  CHECK(llama.config() ==
        R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":320,"tie_word_embeddings":false,)"
        R"("num_hidden_layers":2,"max_position_embeddings":512,"hidden_size":64,"intermediate_size":96,)"
        R"("num_attention_heads":4,"num_key_value_heads":2,"rope_theta":1E4,"rms_norm_eps":1E-5,"head_dim":16,)"
        R"("attention_bias":false,"mlp_bias":false})");
  llama.text("rope.scaling.type", "linear").real("rope.scaling.factor", 2.5);
  CHECK(llama.config().find(R"("rope_scaling":{"rope_type":"linear","factor":2.5E0})") != std::string::npos);
  CHECK(Restored("qwen2").config().find(R"("model_type":"qwen2")") != std::string::npos);
}

TEST_CASE("config.json says what llama.cpp uses for entries that the metadata lacks") {
  Restored qwen("qwen2");
  qwen.without("attention.head_count_kv").without("rope.freq_base").number("attention.key_length", 16);
  CHECK(qwen.config().find(R"("num_attention_heads":4,"num_key_value_heads":4,"rope_theta":1E4)") != std::string::npos);
  CHECK(Restored("qwen3").config().find(R"("head_dim":16)") != std::string::npos);  // the class has 128
  Restored llama("llama");
  CHECK(llama.config().find(R"("head_dim":16)") != std::string::npos);
  llama.without("attention.layer_norm_rms_epsilon");
  CHECK(llama.config() == "error: it has no llama.attention.layer_norm_rms_epsilon");
  CHECK(Restored("llama").number("rope.dimension_count", 8).config() ==
        "error: a LlamaForCausalLM cannot express llama.rope.dimension_count (8)");
}

TEST_CASE("config.json says which tensors a model has") {
  CHECK(Restored("qwen3").add("blk.0.attn_q.bias", {1, {64, 1, 1, 1}}).config().find(R"("attention_bias":true)") !=
        std::string::npos);
  CHECK(Restored("qwen2").add("output.bias", {1, {320, 1, 1, 1}}).config() ==
        "error: no checkpoint of 'qwen2' is like this model");
}

TEST_CASE("a model that config.json cannot express has none") {
  Restored llama("llama");
  llama.number("vocab_size", 320).number("rope.dimension_count", 16).number("attention.sliding_window", 128);
  CHECK(llama.config() == "error: a LlamaForCausalLM cannot express llama.attention.sliding_window (128)");
  CHECK(Restored("llama")
            .numbers("attention.head_count_kv", {2, 2})
            .config()
            .starts_with("error: a LlamaForCausalLM cannot express llama.attention.head_count_kv"));
  Restored other("llama");
  other.number("rope.dimension_count", 8).number("attention.key_length", 16).number("attention.value_length", 16);
  CHECK(other.config().starts_with("error: a LlamaForCausalLM cannot express "));
  Restored computed("llama");
  computed.add("rope_freqs.weight", {1, {8, 1, 1, 1}});
  CHECK(computed.config().starts_with("error: the values of tensor 'rope_freqs.weight' cannot be read: "));
  const TempDir folder;
  CHECK(Restored("llama").store("rope_freqs.weight", {2, 2, 2, 2, 2, 2, 2, 2}, folder.file("factors")).config() ==
        "error: a LlamaForCausalLM cannot express tensor 'rope_freqs.weight'");
  CHECK(Restored("mamba").config() == "error: the map of 'mamba' does not describe its checkpoints");
  CHECK(Restored("none").config() == "error: the map of 'none' does not describe its checkpoints");
}
