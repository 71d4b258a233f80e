// Tests of the class defaults for config.json. The expected values are those of transformers 4.57.
#include "stages/huggingface/map/model_type.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "pipeline/config/yaml_reader.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
namespace json = boost::json;

namespace {

CompletedConfig read(const std::string& config) {
  const auto made = with_class_defaults("folder", json::parse(config).as_object());
  if (!made) FAIL(render(made.error()));
  return made.value();
}

json::object completed(const std::string& config) { return read(config).config; }

bool is_refused(const std::string& config) { return read(config).is_refused; }

// Returns one value of the completed configuration, given its dotted path; "missing" if there is no such key.
std::string value_in(const std::string& config, std::string_view path) {
  json::value at = completed(config);
  while (true) {
    const std::string_view name = path.substr(0, path.find('.'));
    const json::value* const member = at.as_object().if_contains(name);
    if (!member) return "missing";
    const json::value next = *member;
    if (name.size() == path.size()) return json::serialize(next);
    at = next;
    path.remove_prefix(name.size() + 1);
  }
}

bool is_unchanged(const std::string& config) { return completed(config) == json::parse(config).as_object(); }

}  // namespace

TEST_CASE("every model type passes the lint and can be completed") {
  CHECK(built_in_model_types().size() > 90);
  for (const BuiltInModelType& type : built_in_model_types()) {
    CAPTURE(type.name);
    Diagnostics errors;
    const auto document = read_document(type.text, std::string(type.name), errors);
    REQUIRE(document);
    lint(document->root, model_type_fields(), errors);
    CHECK(errors.empty());
    const std::string config = json::serialize(json::object{{"model_type", type.name}});
    CHECK(is_unchanged(config) == (document->root.find("partial") != nullptr));
  }
}

TEST_CASE("missing keys get constants or values computed from others") {
  const std::string llama = R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4})";
  CHECK(value_in(llama, "rope_theta") == "1E4");
  CHECK(value_in(llama, "max_position_embeddings") == "2048");
  CHECK(value_in(llama, "head_dim") == "16");
  CHECK(value_in(llama, "num_key_value_heads") == "4");
  CHECK(value_in(llama, "hidden_size") == "64");
  CHECK(value_in(R"({"model_type": "llama", "_name_or_path": "org/name"})", "_name_or_path") == R"("folder")");
  CHECK(value_in(llama, "tie_word_embeddings") == "false");
  CHECK(value_in(R"({"model_type": "gemma"})", "tie_word_embeddings") == "true");
  CHECK(value_in(R"({"model_type": "gemma2", "num_hidden_layers": 3})", "layer_types") ==
        R"(["sliding_attention","full_attention","sliding_attention"])");
  CHECK(value_in(R"({"model_type": "lfm2", "num_hidden_layers": 3, "full_attn_idxs": [1]})", "layer_types") ==
        R"(["conv","full_attention","conv"])");
  CHECK(value_in(R"({"model_type": "t5", "num_layers": 2})", "num_decoder_layers") == "2");
}

TEST_CASE("null is replaced where the class does so, and kept elsewhere") {
  const std::string members = R"("num_attention_heads": 8, "num_key_value_heads": null, "head_dim": null})";
  for (const char* type : {"llama", "mistral", "qwen3"})
    CHECK(value_in(R"({"model_type": ")" + std::string(type) + R"(", )" + members, "num_key_value_heads") == "8");
  CHECK(value_in(R"({"model_type": "llama", )" + members, "head_dim") == "512");
  CHECK(value_in(R"({"model_type": "mistral", )" + members, "head_dim") == "null");
  CHECK(value_in(R"({"model_type": "mistral"})", "head_dim") == "null");
  CHECK(value_in(R"({"model_type": "mistral"})", "num_key_value_heads") == "8");
  CHECK(value_in(R"({"model_type": "llama", "max_position_embeddings": null})", "max_position_embeddings") == "null");
}

TEST_CASE("values set by the class replace those in config.json") {
  CHECK(value_in(R"({"model_type": "deepseek_v2", "head_dim": 7})", "head_dim") == "64");
  CHECK(value_in(R"({"model_type": "deepseek_v3", "head_dim": 7})", "head_dim") == "7");
  CHECK(value_in(R"({"model_type": "qwen2", "sliding_window": 9})", "sliding_window") == "null");
  CHECK(value_in(R"({"model_type": "qwen2", "sliding_window": 9, "use_sliding_window": true})", "sliding_window") ==
        "9");
  CHECK(value_in(R"({"model_type": "gpt_neox", "rotary_pct": 0.5})", "partial_rotary_factor") == "5E-1");
  CHECK(value_in(R"({"model_type": "hunyuan_v1_dense", "eod_token_id": 3})", "eod_token_id") == "missing");
}

TEST_CASE("aliases of keys stand for the class's keys") {
  const std::string gpt2 = R"({"model_type": "gpt2", "hidden_size": 64, "n_embd": 32})";
  CHECK(value_in(gpt2, "n_embd") == "64");
  CHECK(value_in(gpt2, "hidden_size") == "missing");
  CHECK(value_in(R"({"model_type": "gpt-sw3"})", "n_embd") == "768");
  CHECK(value_in(R"({"model_type": "gpt-sw3"})", "model_type") == R"("gpt2")");
}

TEST_CASE("a nested text model has the defaults of its own model type") {
  CHECK(value_in(R"({"model_type": "gemma3", "text_config": {"hidden_size": 64}})",
                 "text_config.rope_local_base_freq") == "1E4");
  CHECK(value_in(R"({"model_type": "gemma3"})", "text_config.hidden_size") == "2304");
  CHECK(value_in(R"({"model_type": "llava", "text_config": {}})", "text_config.rms_norm_eps") == "1E-6");
  CHECK(value_in(R"({"model_type": "llava", "text_config": {"model_type": "qwen3"}})", "text_config.head_dim") ==
        "128");
  CHECK(value_in(R"({"model_type": "voxtral", "text_config": {}})", "text_config.head_dim") == "128");
  CHECK(value_in(R"({"model_type": "qwen2_vl", "hidden_size": 64})", "text_config.hidden_size") == "64");
  CHECK(value_in(R"({"model_type": "qwen2_5_omni"})", "thinker_config.text_config.vocab_size") == "152064");
  // A text model that is made from the siblings does not take the other parts, which would replace the completed ones.
  CHECK(value_in(R"({"model_type": "qwen2_5_vl", "hidden_size": 64, "vision_config": {}})",
                 "text_config.vision_config") == "missing");
  CHECK(is_unchanged(R"({"model_type": "llava", "text_config": {"model_type": "none-of-them"}})"));
  CHECK(is_unchanged(R"({"model_type": "llava", "text_config": "none"})"));
}

TEST_CASE("labels are a list by number, with two dummies if there are none") {
  const std::string labels = R"({"model_type": "bert", "id2label": {"10": "k", "2": "c", "0": "a"}})";
  CHECK(value_in(labels, "id2label") == R"(["a","c","k"])");
  CHECK(value_in(R"({"model_type": "bert"})", "id2label") == R"(["LABEL_0","LABEL_1"])");
  CHECK(value_in(R"({"model_type": "bert", "num_labels": 1})", "id2label") == R"(["LABEL_0"])");
}

TEST_CASE("rope_scaling in the older form gets its newer key") {
  CHECK(value_in(R"({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}})",
                 "rope_scaling.rope_type") == R"("linear")");
  CHECK(value_in(R"({"model_type": "qwen2_vl_text", "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}})",
                 "rope_scaling.rope_type") == R"("default")");
}

TEST_CASE("config.json is read as is if its class is unknown") {
  for (const char* config : {R"({"hidden_size": 64})", R"({"model_type": 5})", R"({"model_type": "none-of-them"})",
                             R"({"model_type": "any"})", R"({"model_type": "../llama"})"}) {
    CAPTURE(config);
    CHECK(is_unchanged(config));
    CHECK_FALSE(is_refused(config));
  }
}

TEST_CASE("config.json is read as is, with a warning, if its class rejects a value") {
  for (const char* config : {
           R"({"model_type": "llama", "num_attention_heads": 0})",
           R"({"model_type": "llama", "torch_dtype": "bfloat15"})",
           R"({"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})",
           R"({"model_type": "cohere", "rope_scaling": {"type": "linear", "factor": 2.0}})",
           R"({"model_type": "olmo", "rope_scaling": {"type": "linear", "factor": 2}})",
           R"({"model_type": "qwen3", "num_hidden_layers": 2, "layer_types": ["full_attention"]})",
           R"({"model_type": "bamba", "mamba_d_head": 7})",
       }) {
    CAPTURE(config);
    CHECK(is_unchanged(config));
    CHECK(is_refused(config));
  }
  CHECK_FALSE(is_unchanged(R"({"model_type": "olmo", "rope_scaling": {"type": "linear", "factor": 2.0}})"));
}

TEST_CASE("the text model of Gemma 3n has a width of its feed forward for each layer") {
  const std::string given =
      R"({"model_type": "gemma3n", "text_config": {"num_hidden_layers": 3, "intermediate_size": )";
  CHECK(value_in(given + "8}}", "text_config.intermediate_size") == "[8,8,8]");
  CHECK(value_in(given + "[8, 9, 10]}}", "text_config.intermediate_size") == "[8,9,10]");
  CHECK(is_refused(given + "[8, 9]}}"));
  CHECK(value_in(given + "8}}", "text_config.activation_sparsity_pattern") == "[0E0,0E0,0E0]");
  CHECK(value_in(R"({"model_type": "gemma3n_text", "num_hidden_layers": 6})", "layer_types") ==
        R"(["sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention",)"
        R"("sliding_attention"])");
}

TEST_CASE("encoders of images and sound get the defaults of their own classes") {
  const auto in_part = [](const std::string& type, const std::string& part, const std::string& members,
                          const std::string& key) {
    return value_in(R"({"model_type": ")" + type + R"(", ")" + part + R"(": {)" + members + "}}", part + "." + key);
  };
  const auto in_vision = [&](const std::string& type, const std::string& key) {
    return in_part(type, "vision_config", R"("image_size": 8)", key);
  };
  for (const std::string type : {"gemma3", "idefics3", "internvl", "janus", "smolvlm"}) {
    CHECK(in_vision(type, "layer_norm_eps") == "1E-6");
    CHECK(in_vision(type, "image_size") == "8");
  }
  CHECK(in_vision("llama4", "pixel_shuffle_ratio") == "5E-1");
  CHECK(in_vision("qwen2_vl", "num_heads") == "16");
  CHECK(in_vision("qwen2_5_vl", "fullatt_block_indexes") == "[7,15,23,31]");
  CHECK(in_vision("qwen3_vl_moe", "deepstack_visual_indexes") == "[8,16,24]");
  CHECK(in_vision("glm4v_moe", "intermediate_size") == "13696");
  CHECK(in_vision("mistral3", "hidden_size") == "1024");
  CHECK(in_part("mistral3", "vision_config", R"("hidden_size": 64, "num_attention_heads": 4)", "head_dim") == "16");
  CHECK(in_part("granite_speech", "projector_config", "", "num_attention_heads") == "12");
  CHECK(in_part("granite_speech", "encoder_config", "", "feedforward_mult") == "4");
  CHECK(in_part("qwen2_audio", "audio_config", R"("encoder_layers": 3)", "num_hidden_layers") == "3");
  CHECK(in_part("voxtral", "audio_config", R"("encoder_layers": 3)", "num_hidden_layers") == "32");
  CHECK(in_part("voxtral", "audio_config", R"("encoder_layers": 3)", "encoder_layers") == "missing");
  for (const std::string type : {"qwen2_5_omni", "qwen3_omni_moe"}) {
    const std::string config = R"({"model_type": ")" + type + R"("})";
    CHECK(value_in(config, "thinker_config.vision_config.num_heads") == "16");
    CHECK(value_in(config, "thinker_config.audio_config.num_hidden_layers") == "32");
  }
}

TEST_CASE("an encoder of another class stays as it is, where the model takes encoders of several") {
  const std::string siglip = R"({"model_type": "llava", "vision_config": {"model_type": "siglip_vision_model"}})";
  CHECK(value_in(siglip, "vision_config.layer_norm_eps") == "1E-6");
  CHECK(value_in(R"({"model_type": "llava"})", "vision_config.layer_norm_eps") == "1E-5");
  const std::string other = R"({"model_type": "llava", "vision_config": {"model_type": "none-of-them"}})";
  CHECK(value_in(other, "vision_config") == R"({"model_type":"none-of-them"})");
  CHECK(value_in(other, "text_config.rms_norm_eps") == "1E-6");
}
