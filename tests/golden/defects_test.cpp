// Runs the program on inputs that llama-quantize refuses or handles wrongly: its known defects, listed in README.md.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tests/golden/workplace.h"
#include "tests/support/synth_model.h"

namespace ggufmill::golden {
namespace {

// Writes a model of two layers with small finite F16 weights, after calling `prepare`.
template <class Prepare>
void write_model(const Workplace& place, const std::string& architecture, const Prepare& prepare) {
  GgufBuilder builder;
  builder.metadata = {{"general.architecture", metadata_string(architecture)},
                      {architecture + ".block_count", metadata_unsigned(MetadataType::kUint32, 2)}};
  prepare(builder);
  for (const char* name : {"token_embd.weight", "blk.0.attn_v.weight", "blk.0.ffn_down.weight", "blk.1.attn_v.weight",
                           "blk.1.ffn_down.weight", "output.weight"})
    builder.add_tensor(name, {256, 33}, "F16", static_cast<unsigned char>(builder.tensors.size()));
  builder.add_tensor("output_norm.weight", {7});
  make_finite(builder);
  builder.write(place.file("model.gguf"));
}

void write_model(const Workplace& place, const std::string& architecture) {
  write_model(place, architecture, [](GgufBuilder&) {});
}

TEST_CASE("any alignment gives a file that can be read, with the same tensors") {
  const std::uint32_t alignment = GENERATE(8u, 64u, 4096u);
  const std::string recipe = GENERATE("COPY", "Q4_K_M");
  CAPTURE(alignment, recipe);
  const Workplace place;
  write_model(place, "llama");
  place.quantize({"model.gguf", "plain.gguf", recipe});
  write_model(place, "llama", [&](GgufBuilder& builder) { builder.set_alignment(alignment); });
  place.quantize({"model.gguf", "out.gguf", recipe});
  const ModelFile out = place.read("out.gguf");
  CHECK(out.misaligned == 0);
  CHECK((out.tensors == place.read("plain.gguf").tensors));
}

TEST_CASE("an architecture that no one knows is quantized as any other") {
  const std::string recipe = GENERATE("COPY", "Q4_K_M", "IQ4_XS");
  CAPTURE(recipe);
  const Workplace place;
  write_model(place, "llama");
  place.quantize({"model.gguf", "known.gguf", recipe});
  write_model(place, "nobody-knows-this-2");
  place.quantize({"model.gguf", "out.gguf", recipe});
  CHECK((place.read("out.gguf").tensors == place.read("known.gguf").tensors));
}

TEST_CASE("a model without any architecture is quantized") {
  const Workplace place;
  write_model(place, "llama", [](GgufBuilder& builder) { builder.metadata.clear(); });
  place.quantize({"model.gguf", "out.gguf", "Q8_0"});
  CHECK(place.read("out.gguf").tensors.at("output.weight").type == "Q8_0");
}

TEST_CASE("patterns are matched as written") {
  const Workplace place;
  write_model(place, "llama");
  // A lower-cased \d would not match.
  place.quantize({"--tensor-type", "token\\Dembd=q8_0", "model.gguf", "out.gguf", "Q4_0"});
  CHECK(place.read("out.gguf").tensors.at("token_embd.weight").type == "Q8_0");
  place.quantize({"--tensor-type", "ATTN_V=q8_0", "model.gguf", "out.gguf", "Q4_0"});
  CHECK(place.read("out.gguf").tensors.at("blk.0.attn_v.weight").type == "Q4_0");
}

// Returns the tensors that remain after pruning `layers`, under their new names.
std::map<std::string, TensorBytes> without_layers(const ModelFile& model, const std::vector<int>& layers) {
  std::map<std::string, TensorBytes> kept;
  for (const auto& [name, tensor] : model.tensors) {
    int layer = 0, rest = 0;
    if (std::sscanf(name.c_str(), "blk.%d.%n", &layer, &rest) != 1) {
      kept[name] = tensor;
      continue;
    }
    const auto before = std::count_if(layers.begin(), layers.end(), [&](int pruned) { return pruned < layer; });
    if (std::find(layers.begin(), layers.end(), layer) == layers.end())
      kept[fmt::format("blk.{}.{}", layer - before, name.substr(static_cast<std::size_t>(rest)))] = tensor;
  }
  return kept;
}

TEST_CASE("any layers are pruned") {
  const auto& [words, layers] = GENERATE(table<std::string, std::vector<int>>(
      {{"0", {0}}, {"3,5", {3, 5}}, {"0,1,2,3,4,5,6", {0, 1, 2, 3, 4, 5, 6}}, {"7,2", {7, 2}}}));
  CAPTURE(words);
  const Workplace place;
  synth::write_model(synth::load_spec("tests/golden/models/tiny-llama.json"), place.file("model.gguf"));
  place.quantize({"--prune-layers", words, "model.gguf", "out.gguf", "COPY"});
  const ModelFile out = place.read("out.gguf");
  CHECK((out.tensors == without_layers(place.read("model.gguf"), layers)));
  const MetadataEntry& last = out.metadata.back();
  CHECK(last.key == "llama.block_count");
  CHECK(as_unsigned(last.value) == 8 - layers.size());
}

TEST_CASE("importance follows the layers that are pruned around it") {
  const Workplace place;
  const synth::ModelSpec spec = synth::load_spec("tests/golden/models/tiny-llama.json");
  synth::write_model(spec, place.file("model.gguf"));
  synth::write_imatrix(spec, 70, place.file("imatrix.gguf"));
  place.quantize({"--imatrix", "imatrix.gguf", "--pure", "model.gguf", "whole.gguf", "Q4_0"});
  place.quantize({"--imatrix", "imatrix.gguf", "--pure", "--prune-layers", "0,4", "model.gguf", "out.gguf", "Q4_0"});
  CHECK((place.read("out.gguf").tensors == without_layers(place.read("whole.gguf"), {0, 4})));
}

}  // namespace
}  // namespace ggufmill::golden
