#include "stages/quantize/stream_facts.h"

#include <fmt/format.h>

#include <cstring>

#include "pipeline/core/importance.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// A model whose vectors are stored in a file.
class Vectors {
 public:
  explicit Vectors(const char* architecture) {
    model.metadata.set_at_end("general.architecture", metadata_string(architecture));
  }

  void add(const std::string& name, const std::vector<float>& values) {
    const std::string path = folder_.file(fmt::format("{}", model.tensors.size()));
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    write_text(path, bytes);
    const auto source = std::make_shared<const SourceFile>(SourceFile{path, bytes.size(), 0, 0});
    Tensor& tensor = model.tensors.emplace_back();
    tensor.name = name;
    tensor.expression =
        expressions::extent(type_named("F32"), {1, {values.size(), 1, 1, 1}}, {source, 0, bytes.size()}).value();
    tensor.type = tensor.expression->type;
  }
  void set(const std::string& key, double value) {
    model.metadata.set_at_end(key, metadata_float(MetadataType::kFloat32, value));
  }
  StreamFacts facts() const { return stream_facts(find_objective("stream", {}).value(), model).value(); }

  Model model;

 private:
  TempDir folder_;
};

// A tensor of four experts, each with one importance weight, and what was measured of it.
Tensor experts_that_saw(std::vector<std::int64_t> tokens) {
  auto importance = std::make_shared<Importance>();
  importance->matrices = tokens.size();
  importance->tokens = std::move(tokens);
  Tensor tensor;
  tensor.name = "blk.0.ffn_down_exps.weight";
  tensor.importance = std::move(importance);
  return tensor;
}

MeasuredTensor measured_experts() {
  return {"blk.0.ffn_down_exps.weight",
          "",
          {3, {256, 1, 4, 1}},
          40,
          10,
          true,
          {{"Q4_K", 1, 4, 1, {{1, 1, 1, 1}, {0.1, 0.2, 0.3, 0.4}}}},
          {{10, 10, 10, 10}, {1, 2, 3, 4}}};
}

MeasuredTensor by_use(const std::vector<std::int64_t>& tokens, double least_use) {
  Model model;
  model.tensors.push_back(experts_that_saw(tokens));
  Measurement measurement;
  measurement.tensors.push_back(measured_experts());
  return weighted_by_use(measurement, model, least_use).tensors[0];
}

bool is_close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

}  // namespace

TEST_CASE("a norm behind a block's output is found by the layer's other norms") {
  Vectors vectors("gemma2");
  for (const int layer : {0, 1}) {
    vectors.add(fmt::format("blk.{}.attn_norm.weight", layer), {9, 9});
    vectors.add(fmt::format("blk.{}.post_attention_norm.weight", layer), {3, -1});
  }
  vectors.add("blk.0.ffn_norm.weight", {9, 9});  // layer 1 has the norm of its feed-forward part under the other name
  vectors.add("blk.2.post_attention_norm.weight", {1, 2});
  vectors.add("blk.2.post_ffw_norm.weight", {2, 2});
  using Norms = std::map<std::pair<std::uint64_t, std::size_t>, double>;
  CHECK(vectors.facts().norms == Norms{{{0, 0}, 10}, {{2, 0}, 5}, {{2, 1}, 8}});
}

TEST_CASE("a norm that cannot be read is an error that names it") {
  Vectors vectors("gemma2");
  vectors.add("blk.0.post_ffw_norm.weight", {1});
  const Extent gone{std::make_shared<const SourceFile>(SourceFile{"/does/not/exist", 4, 0, 0}), 0, 4};
  vectors.model.tensors[0].expression = expressions::extent(type_named("F32"), {1, {1, 1, 1, 1}}, gone).value();
  const auto facts = stream_facts(find_objective("stream", {}).value(), vectors.model);
  REQUIRE_FALSE(facts);
  CHECK(facts.error().what.starts_with("blk.0.post_ffw_norm.weight: "));
}

TEST_CASE("embeddings are scaled by the square root of their length in some architectures") {
  for (const auto& [architecture, scale] : {std::pair{"gemma3", 16.0}, std::pair{"llama", 1.0}}) {
    Vectors vectors(architecture);
    vectors.model.metadata.set_at_end(fmt::format("{}.embedding_length", architecture),
                                      metadata_unsigned(MetadataType::kUint32, 256));
    CHECK(vectors.facts().embedding_scale == scale);
  }
}

TEST_CASE("scales of embeddings and blocks are those of the metadata") {
  Vectors granite("granite");
  granite.set("granite.embedding_scale", 12);
  granite.set("granite.residual_scale", 0.25);
  CHECK(granite.facts().embedding_scale == 12);
  CHECK(granite.facts().block_scale == 0.25);
  Vectors minimax("minimax-01");  // its scale is that of the stream
  minimax.set("minimax-01.residual_scale", 0.25);
  CHECK(minimax.facts().block_scale == 1);
}

TEST_CASE("the last layers of a model can predict further tokens") {
  Vectors glm("glm4moe");
  glm.model.metadata.set_at_end("glm4moe.block_count", metadata_unsigned(MetadataType::kUint32, 47));
  CHECK(glm.facts().first_extra_layer == UINT64_MAX);
  glm.model.metadata.set_at_end("glm4moe.nextn_predict_layers", metadata_unsigned(MetadataType::kUint32, 1));
  CHECK(glm.facts().first_extra_layer == 46);
}

TEST_CASE("experts count by the tokens they saw") {
  const MeasuredTensor equal = by_use({7, 7, 7, 7}, 0);
  CHECK(is_close(equal.weighted_energy, 10));
  CHECK(is_close(equal.types[0].weighted_error, 1));
  const MeasuredTensor used = by_use({30, 10, 0, 0}, 0);
  CHECK(is_close(used.energy, 40));
  CHECK(is_close(used.weighted_energy, 3 * 1 + 1 * 2));
  CHECK(is_close(used.types[0].error, 4));
  CHECK(is_close(used.types[0].weighted_error, 3 * 0.1 + 1 * 0.2));
}

TEST_CASE("an expert counts at least a share of the mean") {
  // Three tokens for each the mean of one; the others get half of the mean: 4, 0.5, 0.5, 0.5 of 5.5.
  const MeasuredTensor used = by_use({8, 0, 0, 0}, 0.5);
  CHECK(is_close(used.weighted_energy, 4 * (4 * 1 + 0.5 * (2 + 3 + 4)) / 5.5));
}

TEST_CASE("tensors without tokens or matrices are measured as before") {
  CHECK(by_use({}, 0).weighted_energy == 10);
  CHECK(by_use({1, 2, 3}, 0).weighted_energy == 10);
  CHECK(by_use({0, 0, 0, 0}, 0).weighted_energy == 10);
}

TEST_CASE("importance is little known if it is missing or most experts saw few tokens") {
  const Objective stream = find_objective("stream", {}).value();
  Tensor without;
  without.name = "blk.0.ffn_down_exps.weight";
  CHECK(is_little_known(stream, without));
  CHECK_FALSE(is_little_known(find_objective("relative", {}).value(), without));
  for (const char* name : {"token_embd.weight", "output.weight"}) {
    without.name = name;
    CHECK_FALSE(is_little_known(stream, without));
  }
  CHECK_FALSE(is_little_known(stream, experts_that_saw({100, 100, 3, 0})));
  CHECK(is_little_known(stream, experts_that_saw({100, 5, 3, 0})));
}

TEST_CASE("importance is little known if most experts have that of others") {
  auto importance = std::make_shared<Importance>();
  importance->matrices = 4;
  importance->substituted = {0, 1, 3};
  Tensor tensor;
  tensor.name = "blk.0.ffn_up_exps.weight";
  tensor.importance = importance;
  CHECK(is_little_known(find_objective("stream", {}).value(), tensor));
}
