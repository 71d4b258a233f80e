#include "stages/huggingface/checkpoint/adapter.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

// Returns a tensor for each line: A of two rows of 4, B of six rows of 2, and vectors.
Checkpoint tensors_named(std::string_view lines) {
  Checkpoint checkpoint;
  while (!lines.empty()) {
    const std::string name(lines.substr(0, lines.find('\n')));
    lines.remove_prefix(std::min(lines.size(), name.size() + 1));
    Shape shape{1, {4, 1, 1, 1}};
    if (name.find("_A") != name.npos) shape = {2, {4, 2, 1, 1}};
    if (name.find("_B") != name.npos) shape = {2, {2, 6, 1, 1}};
    checkpoint.tensors.push_back({name, expressions::constant(shape, std::vector<float>(shape.elements(), 1)).value(),
                                  std::vector<std::uint64_t>(shape.rank, 2)});
  }
  return checkpoint;
}

}  // namespace

std::string fuzz_adapter(std::string_view bytes) {
  static const TempDir folder;
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string_view names = bytes.substr(std::min(end + 1, bytes.size()));
  write_text(folder.file("adapter_config.json"), bytes.substr(0, end));
  write_text(folder.file("adapter_model.safetensors"), "");
  const auto adapter = huggingface::read_adapter(
      folder.path(),
      [&](const std::string&, const MissingFiles&) -> Result<Checkpoint> { return tensors_named(names); });
  if (!adapter) {
    const Error& error = adapter.error();
    const bool clear = error.code == ExitCode::kBadInput && error.where.starts_with(folder.path().string()) &&
                       !error.what.empty() && error.what.find('\n') == std::string::npos;
    return clear ? "" : "not a clear error: " + render(error);
  }
  for (const huggingface::NamedTensor& tensor : adapter.value().tensors)
    if (tensor.values->shape.rank == 2 && !huggingface::pair_of(*tensor.values, huggingface::PairUse::kStored))
      return "a pair is lost";
  return {};
}

std::vector<std::string> adapter_seeds() {
  const std::string module = "base_model.model.model.layers.0.self_attn.q_proj",
                    pair = module + ".lora_A.weight\n" + module + ".lora_B.weight\n",
                    embedding =
                        "base_model.model.model.embed_tokens.lora_embedding_A\n"
                        "base_model.model.model.embed_tokens.lora_embedding_B\n";
  const auto seed = [](const std::string& config, const std::string& names) {
    return config + std::string(1, '\0') + names;
  };
  return {
      seed(R"({"peft_type": "LORA", "lora_alpha": 16, "r": 2, "use_rslora": true})", pair + embedding),
      seed(R"({"lora_alpha": 16, "alpha_pattern": {"^model.*q_proj": 8, "k_proj": 0.5}, "rank_pattern": {}})", pair),
      seed(R"({"lora_alpha": 1e-3, "fan_in_fan_out": true, "use_dora": false, "layer_replication": null})",
           pair + "base_model.model.model.norm.weight\n"),
      seed(R"({"lora_alpha": 16, "alora_invocation_tokens": [1, 2, 4294967295]})", pair),
      seed(R"({"lora_alpha": 16})", module + ".lora_magnitude_vector\n")};
}

}  // namespace ggufmill
