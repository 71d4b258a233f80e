#include "stages/quantize/recipe_from.h"

#include <fmt/format.h>

#include "stages/quantize/quantize_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Model llama(int layers) {
  const auto source = std::make_shared<const SourceFile>(SourceFile{"model.gguf", 1u << 30, 0, 0});
  Model model;
  model.metadata.set_at_end("general.architecture", metadata_string("llama"));
  model.metadata.set_at_end("llama.block_count",
                            metadata_unsigned(MetadataType::kUint32, static_cast<std::uint64_t>(layers)));
  const auto add = [&](const std::string& name, std::uint64_t rows) {
    Tensor tensor;
    tensor.name = name;
    const Shape shape{rows == 1 ? 1u : 2u, {256, rows, 1, 1}};
    tensor.expression = expressions::extent(type_named("BF16"), shape, {source, 0, 512 * rows}).value();
    tensor.type = tensor.expression->type;
    model.tensors.push_back(tensor);
  };
  add("token_embd.weight", 64);
  add("output.weight", 64);
  add("output_norm.weight", 1);
  for (int layer = 0; layer < layers; ++layer)
    for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
      add(fmt::format("blk.{}.{}.weight", layer, part), 32);
  return model;
}

Model quantized(const std::string& recipe, Model model) {
  QuantizeStageOptions options;
  options.recipe = RecipeShelf().find(recipe).value();
  return make_quantize_stage(std::move(options), RecipeShelf()).value()->apply(std::move(model)).value();
}

std::vector<std::string> types_of(const Model& model) {
  std::vector<std::string> types;
  for (const Tensor& tensor : model.tensors) types.push_back(tensor.name + " " + std::string(tensor.type->name));
  return types;
}

}  // namespace

TEST_CASE("of every built-in recipe's types a recipe is made that gives the same") {
  const TempDir folder;
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    const auto recipe = RecipeShelf().find(std::string(built_in.name));
    if (recipe.value().partial || recipe.value().name == "COPY") continue;
    CAPTURE(built_in.name);
    const Model made = quantized(std::string(built_in.name), llama(32));
    const std::string path = folder.file("mine.yaml");
    const auto text = recipe_from(made, "model.gguf", RecipeShelf());
    REQUIRE(text);
    write_text(path, text.value());
    CHECK(types_of(quantized(path, llama(32))) == types_of(made));
  }
}

TEST_CASE("the rules are few, and say layers only where they differ") {
  const std::string text = recipe_from(quantized("Q4_K_M", llama(4)), "model.gguf", RecipeShelf()).value();
  CHECK(
      text ==
      "description: 'the types of model.gguf'\nextends: base\ntype: Q4_K\nrules:\n"
      "  - {match: '^(blk\\.(2|3)\\.attn_v\\.weight|blk\\.(2|3)\\.ffn_down\\.weight|output\\.weight)$', type: Q6_K}\n");
}

TEST_CASE("names that YAML or a pattern would read otherwise are taken as they are") {
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
  write_text(path, recipe_from(made, "my: 'model'.gguf", RecipeShelf()).value());
  CHECK(types_of(quantized(path, model)) == types_of(made));
}
