#include "stages/gguf/specification.h"

#include <algorithm>

#include "stages/gguf/file_name.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::gguf;

namespace {

// Returns a valid model of one layer.
Model valid() {
  Model model;
  const auto number = [&](const char* key, std::uint64_t value) {
    model.metadata.set_at_end(key, metadata_unsigned(MetadataType::kUint32, value));
  };
  model.metadata.set_at_end("general.architecture", metadata_string("llama"));
  for (const char* key : {"llama.context_length", "llama.feed_forward_length", "llama.rope.dimension_count"})
    number(key, 64);
  number("llama.embedding_length", 32);
  number("llama.block_count", 1);
  number("llama.attention.head_count", 4);
  model.metadata.set_at_end("llama.attention.layer_norm_rms_epsilon", metadata_float(MetadataType::kFloat32, 1e-5));
  model.metadata.set_at_end("tokenizer.ggml.tokens",
                            metadata_array(MetadataType::kString, {metadata_string("a"), metadata_string("b")}));
  number("tokenizer.ggml.bos_token_id", 1);
  model.tensors = {bare_tensor("token_embd.weight", {32, 2}), bare_tensor("blk.0.attn_q.weight", {32, 32})};
  return model;
}

constexpr const char* kName = "models/Mine-7B-v1.0-F32.gguf";

// Returns "WHERE WHAT" for every finding; recommendations start with "(".
std::vector<std::string> words(const Model& model, const char* path = kName) {
  std::vector<std::string> all;
  for (const Finding& finding : check_specification(path, model))
    all.push_back((finding.is_required ? "" : "(") + finding.where + " " + finding.what);
  return all;
}
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a valid model has no findings") { CHECK(words(valid()).empty()); }

TEST_CASE("keys required for an architecture and for quantized tensors") {
  Model model = valid();
  model.metadata.remove("llama.block_count");
  model.tensors[1].type = &type_named("Q8_0");
  CHECK(words(model) == Words{"general.quantization_version is missing", "llama.block_count is missing"});
  model.metadata.remove("general.architecture");
  CHECK(words(model).front() == "general.architecture is missing");
}

TEST_CASE("types and ranges of values") {
  Model model = valid();
  model.metadata.set("llama.context_length", metadata_unsigned(MetadataType::kUint64, 64));
  CHECK(words(model).empty());
  model.metadata.set("llama.context_length", metadata_unsigned(MetadataType::kInt32, 64));
  model.metadata.set("general.tags", metadata_string("a"));
  model.metadata.set("general.alignment", metadata_unsigned(MetadataType::kUint32, 4));
  model.metadata.set("tokenizer.ggml.bos_token_id", metadata_unsigned(MetadataType::kUint32, 2));
  CHECK(words(model) == Words{"general.alignment is 4", "llama.context_length is of type int32",
                              "general.tags is of type string", "tokenizer.ggml.bos_token_id is 2"});
}

TEST_CASE("shapes and layers of tensors") {
  Model model = valid();
  model.tensors = {bare_tensor("token_embd.weight", {64, 3}), bare_tensor("blk.1.attn_q.weight", {32, 32})};
  CHECK(words(model) == Words{"token_embd.weight is 64 x 3", "token_embd.weight is 64 x 3",
                              "blk.1.attn_q.weight belongs to a layer that the model does not have"});
}

TEST_CASE("recommended forms") {
  Model model = valid();
  model.metadata.set("My Key", metadata_bool(true));
  CHECK(words(model, "model.gguf") ==
        Words{"(My Key does not have the usual form of a key", "(model.gguf does not follow the naming convention"});
}

TEST_CASE("file names that follow the convention") {
  const auto mixtral = parse_file_name("models/Mixtral-8x7B-v0.1-KQ2.gguf");
  REQUIRE(mixtral);
  CHECK(mixtral->base_name == "Mixtral");
  CHECK(mixtral->size_label == "8x7B");
  CHECK(mixtral->version == "v0.1");
  CHECK(mixtral->encoding == "KQ2");
  const auto grok = parse_file_name("Grok-100B-v1.0-Q4_0-00003-of-00009.gguf");
  REQUIRE(grok);
  CHECK(grok->shard == "00003-of-00009");
  const auto phi = parse_file_name("mtp-Phi-3-mini-3.8B-ContextLength4k-instruct-v1.0.gguf");
  REQUIRE(phi);
  CHECK(phi->sidecar == "mtp");
  CHECK(phi->base_name == "Phi-3-mini");
  CHECK(phi->size_label == "3.8B-ContextLength4k");
  CHECK(phi->finetune == "instruct");
  CHECK_FALSE(phi->encoding);
  CHECK_FALSE(parse_file_name("not-a-known-arrangement.gguf"));
  CHECK_FALSE(parse_file_name(std::string(300, 'a') + "-v1.0.gguf"));
}

TEST_CASE("a name that does not follow the convention is explained") {
  const auto explained = [](const char* name) {
    const NameFaults made = explain_file_name(name);
    std::string all;
    for (const std::string& fault : made.faults) all += (all.empty() ? "" : "; ") + fault;
    return all + " | " + made.better;
  };
  CHECK(explained("Qwen3-4B-UD-Q2_K_XL.gguf") == "no version | Qwen3-4B-UD-v1.0-Q2_K_XL.gguf");
  CHECK(explained("a/mmproj-Tuna-4B-F16.gguf") == "no version | mmproj-Tuna-4B-v1.0-F16.gguf");
  CHECK(explained("Tuna-v1.0-Q4_K_M.gguf") == "no size, such as 7B | ");
  CHECK(explained("Tuna-7B-2.5-Q4_K_M.gguf") ==
        "a version begins with v: 'v2.5', not '2.5' | Tuna-7B-v2.5-Q4_K_M.gguf");
  CHECK(explained("Tuna-7B-v1.0-UD-Q2_K_XL.gguf") ==
        "'UD' between the version and the encoding | Tuna-7B-UD-v1.0-Q2_K_XL.gguf");
  CHECK(explained("Tuna-7B-v1.0-F32-Q2_K.gguf") == "two encodings, 'F32' and 'Q2_K' | Tuna-7B-v1.0-Q2_K.gguf");
  CHECK(explained("tuna-7b.Q4_K_M.gguf") ==
        "a dot, not a hyphen, before the encoding 'Q4_K_M'; no version | tuna-7b-v1.0-Q4_K_M.gguf");
  CHECK(explained("Tuna_7B_v1.0_Q4_K_M.gguf") ==
        "underscores, not hyphens, between its parts | Tuna-7B-v1.0-Q4_K_M.gguf");
  CHECK(explained("Tuna-7B-v1.0-Q4_K_M-0001-of-0002.gguf") ==
        "a shard has five digits: '00001-of-00002', not '0001-of-0002' | Tuna-7B-v1.0-Q4_K_M-00001-of-00002.gguf");
  CHECK(explained("tuna-2.5-7b-v1.0.gguf") ==
        "characters other than letters, digits, spaces, and hyphens in 'tuna-2.5' | ");
  CHECK(explained("Tuna-7B-v1.0-Q4_K_M-lora.gguf") == "'lora' is written 'LoRA' | Tuna-7B-v1.0-Q4_K_M-LoRA.gguf");
  CHECK(explained("Tuna-7B-v1.0-Q4_K_M.bin") ==
        "it does not end in '.gguf'; characters other than letters, digits, spaces, and hyphens in 'Q4_K_M.bin' | ");
  CHECK(explained("Tuna-7B-v1.0-Q4_K_M-imat.GGUF") ==
        "'.GGUF' is written '.gguf'; 'imat' after the encoding | Tuna-7B-imat-v1.0-Q4_K_M.gguf");
  CHECK(explained("Tuna 7B v1.0 Q4_K_M.gguf") == "spaces, not hyphens, between its parts | Tuna-7B-v1.0-Q4_K_M.gguf");
  CHECK(explained("Tuna-v1.0-7B-Q4_K_M.gguf") ==
        "'7B' between the version and the encoding | Tuna-7B-v1.0-Q4_K_M.gguf");
  CHECK(explained(("Tuna-7B-v1.0-" + std::string(300, 'a') + ".gguf").c_str())
            .starts_with("it is longer than 255 bytes"));
  CHECK(explained("") == "it does not end in '.gguf'; no version; no size, such as 7B; no base name | ");
  for (const char* parts : {"-", "---", "-of-", "1-of-2", "v1", "v1.0-", "Q4_K_M", "mmproj", ".Q8_0", "_"})
    CHECK_FALSE(explain_file_name(parts).faults.empty());
  const NameFaults qwen = explain_file_name("Tuna-35B-A3B-it-MXFP4_MOE-00001-of-00002.gguf");
  CHECK(qwen.found.base_name == "Tuna");
  CHECK(qwen.found.size_label == "35B-A3B");
  CHECK(qwen.found.finetune == "it");
  CHECK(qwen.found.encoding == "MXFP4_MOE");
  CHECK(qwen.found.shard == "00001-of-00002");
}

TEST_CASE("a file name from metadata") {
  Model model = valid();
  CHECK(file_name_of(model, "1B", "Q4_K_M") == "model-1B-v1.0-Q4_K_M.gguf");
  model.metadata.set("general.name", metadata_string("My model"));
  CHECK(file_name_of(model, "1B", "") == "My-model-1B-v1.0.gguf");
  for (const auto& [key, text] : {std::pair("general.basename", "Mine"),
                                  {"general.size_label", "7B"},
                                  {"general.finetune", "Chat"},
                                  {"general.version", "0.3"}})
    model.metadata.set(key, metadata_string(text));
  CHECK(file_name_of(model, "1B", "F16") == "Mine-7B-Chat-v0.3-F16.gguf");
  CHECK(parse_file_name(file_name_of(model, "1B", "F16"))->finetune == "Chat");
}
