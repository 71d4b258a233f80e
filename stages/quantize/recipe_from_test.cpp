#include "stages/quantize/recipe_from.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "stages/quantize/quantize_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

struct Family {
  const char* architecture;
  std::vector<const char*> parts;  // parts of a layer's tensor names
  bool has_head = true;
  unsigned experts = 0;
};

Model model_of(const Family& family, int layers) {
  const auto source = std::make_shared<const SourceFile>(SourceFile{"model.gguf", 1u << 30, 0, 0});
  const std::string architecture = family.architecture;
  Model model;
  const auto set = [&](const std::string& key, std::uint64_t value) {
    model.metadata.set_at_end(key, metadata_unsigned(MetadataType::kUint32, value));
  };
  model.metadata.set_at_end("general.architecture", metadata_string(architecture));
  set(architecture + ".block_count", static_cast<std::uint64_t>(layers));
  if (family.experts) set(architecture + ".expert_count", family.experts);
  const auto add = [&](const std::string& name, std::uint64_t rows) {
    Tensor tensor;
    tensor.name = name;
    const std::uint64_t matrices = name.find("_exps") == name.npos ? 1 : family.experts;
    const Shape shape{rows == 1 ? 1u : matrices == 1 ? 2u : 3u, {256, rows, matrices, 1}};
    tensor.expression = expressions::extent(type_named("BF16"), shape, {source, 0, 512 * rows * matrices}).value();
    tensor.type = tensor.expression->type;
    model.tensors.push_back(tensor);
  };
  add("token_embd.weight", 64);
  if (family.has_head) add("output.weight", 64);
  add("output_norm.weight", 1);
  for (int layer = 0; layer < layers; ++layer)
    for (const char* part : family.parts) add(fmt::format("blk.{}.{}.weight", layer, part), 32);
  return model;
}

const Family kLlama{"llama", {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}};

Model llama(int layers) { return model_of(kLlama, layers); }

Model quantized(const std::string& recipe, Model model) {
  QuantizeStageOptions options;
  options.recipe = RecipeCatalog().find(recipe).value();
  return make_quantize_stage(std::move(options), RecipeCatalog())->apply(std::move(model)).value();
}

std::vector<std::string> types_of(const Model& model) {
  std::vector<std::string> types;
  for (const Tensor& tensor : model.tensors) types.push_back(tensor.name + " " + std::string(tensor.type->name));
  return types;
}

}  // namespace

TEST_CASE("a recipe made from the types of any built-in recipe gives the same types") {
  const TempDir folder;
  const Family families[] = {
      kLlama,
      {"falcon", {"attn_qkv", "attn_output", "ffn_up", "ffn_down"}},
      {"gemma", kLlama.parts, false},
      {"llama",
       {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"},
       true,
       8},
  };
  for (const Family& family : families)
    for (const BuiltInRecipe& built_in : RecipeCatalog().offered()) {
      const auto recipe = RecipeCatalog().find(std::string(built_in.name));
      if (recipe.value().partial || recipe.value().name == "COPY") continue;
      CAPTURE(family.architecture, family.experts, built_in.name);
      const Model made = quantized(std::string(built_in.name), model_of(family, 32));
      const std::string path = folder.file("mine.yaml");
      const auto text = recipe_from(made, "model.gguf", RecipeCatalog());
      REQUIRE(text);
      write_text(path, text.value());
      CHECK(types_of(quantized(path, model_of(family, 32))) == types_of(made));
      // A rule for each type except that of most weights.
      std::set<const TypeInfo*> types;
      for (const Tensor& tensor : made.tensors)
        if (tensor.converted()) types.insert(tensor.type);
      std::size_t rules = 0;
      for (std::size_t at = 0; (at = text.value().find("\n  - {", at)) != std::string::npos; ++at) ++rules;
      CHECK(rules < std::max<std::size_t>(types.size(), 2));
    }
}

TEST_CASE("the rules are few and name layers only where they differ") {
  const std::string text = recipe_from(quantized("Q4_K_M", llama(4)), "model.gguf", RecipeCatalog()).value();
  CHECK(text ==
        "description: 'the types of model.gguf'\nextends: base\ntype: Q4_K\nrules:\n"
        "  - {match: '^(blk\\.(2|3)\\.attn_v\\.weight|blk\\.(2|3)\\.ffn_down\\.weight|output\\.weight)$', type: "
        "Q6_K}\n");
}

TEST_CASE("names with special characters of YAML or patterns are taken literally") {
  Model model = llama(1);
  for (const char* name : {"it's: a {b} # c.weight", "a.b|c.weight"}) {
    Tensor tensor = model.tensors[0];
    tensor.name = name;
    model.tensors.push_back(tensor);
  }
  Model made = quantized("Q4_K", model);
  for (std::size_t i = made.tensors.size() - 2; i < made.tensors.size(); ++i)
    made.tensors[i].type = &type_named("Q8_0");
  const TempDir folder;
  const std::string path = folder.file("mine.yaml");
  write_text(path, recipe_from(made, "my: 'model'.gguf", RecipeCatalog()).value());
  CHECK(types_of(quantized(path, model)) == types_of(made));
}
