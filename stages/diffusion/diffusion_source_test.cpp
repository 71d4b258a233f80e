#include "stages/diffusion/diffusion_source.h"

#include "stages/diffusion/family.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Dims = std::vector<std::uint64_t>;  // as in the file, slowest first

// A file's tensors, given to the source in place of those that it opens.
struct Bench {
  Checkpoint checkpoint;
  std::string model{};

  Bench& add(const std::string& name, const Dims& dims, const char* type = "F32") {
    Shape shape;
    shape.rank = static_cast<std::uint32_t>(std::min<std::size_t>(std::max<std::size_t>(dims.size(), 1), 4));
    std::size_t at = 0;
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim, ++at) shape.dims[std::min<std::size_t>(at, 3)] *= *dim;
    Tensor made;
    set_source(made, shape, type);
    checkpoint.tensors.push_back({name, made.expression, dims});
    return *this;
  }
  // Adds the tensors that identify a family.
  Bench& add_family(const std::string& name, const char* type = "BF16", const std::string& prefix = "") {
    const auto family = diffusion::named_family(name, {});
    REQUIRE(family);
    for (const std::string& tensor : family.value().found_by.back()) add(prefix + tensor, {64, 64}, type);
    return *this;
  }
  Result<Model> open() const {
    diffusion::SourceOptions options;
    options.path = "model.safetensors";
    options.model = model;
    return make_diffusion_source(
               options, [&](const std::string&, const MissingFiles&) -> Result<Checkpoint> { return checkpoint; })
        ->open();
  }
  Model opened() const {
    auto result = open();
    CAPTURE(result ? "" : render(result.error()));
    REQUIRE(result);
    return std::move(result).value();
  }
};

const Tensor& tensor(const Model& model, std::string_view name) {
  for (const Tensor& each : model.tensors)
    if (each.name == name) return each;
  FAIL("no tensor " << name);
  std::abort();
}

std::string text_at(const Model& model, const std::string& key) {
  const MetadataValue* const value = model.metadata.find(key);
  return value ? describe(*value) : "";
}

}  // namespace

TEST_CASE("each family of diffusion models is found by its tensors") {
  for (const diffusion::BuiltInFamily& family : diffusion::built_in_families()) {
    CAPTURE(family.name);
    CHECK(text_at(Bench().add_family(std::string(family.name)).opened(), "general.architecture") ==
          "\"" + std::string(family.name) + "\"");
  }
}

TEST_CASE("a refiner of Stable Diffusion XL, which has the tensors of Stable Diffusion 1, is one of XL") {
  Bench bench;
  bench.add_family("sd1").add("label_emb.0.0.weight", {64, 64});
  CHECK(text_at(bench.opened(), "general.architecture") == "\"sdxl\"");
}

TEST_CASE("a model whose tensors identify several families is refused, unless the family is named") {
  Bench bench;
  bench.add_family("flux").add_family("sd3");
  const auto refused = bench.open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().where == "model.safetensors");
  CHECK(refused.error().what == "its tensors identify several families: flux, sd3");
  bench.model = "sd3";
  CHECK(text_at(bench.opened(), "general.architecture") == "\"sd3\"");
  CHECK(bench.opened().warnings.empty());
}

TEST_CASE("a model in the layout of Diffusers is refused") {
  const auto refused = Bench().add("transformer_blocks.0.attn.norm_added_k.weight", {8}).open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().where == "model.safetensors");
  CHECK(refused.error().what ==
        "its tensors have the layout of Diffusers (FLUX 1 and 2, and Chroma), which ComfyUI-GGUF does not read from a "
        "GGUF file");
}

TEST_CASE("tensors of no known family are refused, unless the family is named") {
  Bench bench;
  bench.add("x.weight", {8, 8});
  const auto refused = bench.open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "its tensors, such as 'x.weight', are not those of a known diffusion model");
  bench.model = "flux";
  CHECK(text_at(bench.opened(), "general.architecture") == "\"flux\"");
}

TEST_CASE("a named family that the tensors do not identify is a warning") {
  Bench bench;
  bench.add_family("flux");
  bench.model = "wan";
  CHECK(bench.opened().warnings ==
        std::vector<std::string>{"model.safetensors: its tensors do not identify it as a model of the family 'wan'"});
}

TEST_CASE("a file without tensors is refused") {
  const auto refused = Bench().open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "it has no tensors of a diffusion model");
}

TEST_CASE("the other models of a file and the prefix are omitted") {
  const Model model = Bench()
                          .add_family("flux", "BF16", "model.diffusion_model.")
                          .add("first_stage_model.decoder.conv_in.weight", {8, 8})
                          .add("first_stage_model.decoder.conv_out.weight", {8, 8})
                          .opened();
  REQUIRE(model.tensors.size() == 1);
  CHECK(model.tensors[0].name == "double_blocks.0.img_attn.proj.weight");
  CHECK(model.warnings == std::vector<std::string>{"model.safetensors: tensors of other models, without the prefix "
                                                   "'model.diffusion_model.', are omitted: "
                                                   "'first_stage_model.decoder.conv_in.weight' and 1 more"});
}

TEST_CASE("an error in finding the family lists the omitted tensors") {
  const auto refused = Bench().add("model.x", {8, 8}).add("double_blocks.0.img_attn.proj.weight", {8, 8}).open();
  REQUIRE_FALSE(refused);
  CHECK(
      refused.error().detail.ends_with("\n  tensors of other models, without the prefix 'model.', are omitted: "
                                       "'double_blocks.0.img_attn.proj.weight'"));
}

TEST_CASE("FP8 weights with scales are shown as the file has them") {
  const TempDir folder;
  const std::string path = folder.file("model.safetensors");
  write_text(path, "");
  Bench bench;
  bench.add_family("flux", "F8_E4M3");
  const auto fit = [&] {
    return diffusion_source(
               [&](const std::string&, const MissingFiles&) -> Result<Checkpoint> { return bench.checkpoint; })
        .fit(path);
  };
  CHECK(fit() == SourceFit::kContents);
  bench.add("scaled_fp8", {2}, "F8_E4M3");
  CHECK(fit() == SourceFit::kNone);
}

TEST_CASE("vectors and small tensors stay precise, others become 16-bit floats") {
  const Model model = Bench()
                          .add_family("hidream")
                          .add("a", {2048}, "BF16")
                          .add("b", {32, 32}, "F32")
                          .add("c", {32, 33}, "F32")
                          .add("d", {2048}, "F16")
                          .add("e", {64, 64}, "F8_E4M3")
                          .add("x.ff_i.gate.weight", {64, 64}, "BF16")
                          .opened();
  CHECK(tensor(model, "a").type->name == "F32");
  CHECK(tensor(model, "b").type->name == "F32");
  CHECK(tensor(model, "c").type->name == "F16");
  CHECK(tensor(model, "d").type->name == "F16");
  CHECK(tensor(model, "e").type->name == "F16");
  CHECK(tensor(model, "x.ff_i.gate.weight").type->name == "F32");
  CHECK(tensor(model, "caption_projection.0.linear.weight").type->name == "BF16");
}

TEST_CASE("the file type is BF16 if most tensors are") {
  CHECK(text_at(Bench().add_family("hidream").add("a", {8}).opened(), "general.file_type") == "32");
  CHECK(text_at(Bench().add_family("flux").add("a", {8}).opened(), "general.file_type") == "1");
}

TEST_CASE("convolutions of Stable Diffusion become rows of 256, and their dimensions are stored") {
  const Model model = Bench().add_family("sd1").add("a.weight", {64, 32, 3, 3}).add("b.weight", {4, 32, 3, 3}).opened();
  CHECK(describe(tensor(model, "a.weight").shape()) == "256 x 72");
  CHECK(text_at(model, "comfy.gguf.orig_shape.a.weight").find("64, 32, 3, 3") != std::string::npos);
  CHECK(describe(tensor(model, "b.weight").shape()) == "3 x 3 x 32 x 4");  // 1152 values are not whole rows
  CHECK(text_at(model, "comfy.gguf.orig_shape.b.weight").empty());
}

TEST_CASE("tensors of five dimensions are stored with four, as F32") {
  const Model model = Bench().add_family("wan").add("patch_embedding.weight", {16, 4, 1, 2, 2}, "BF16").opened();
  CHECK(describe(tensor(model, "patch_embedding.weight").shape()) == "2 x 2 x 1 x 64");
  CHECK(tensor(model, "patch_embedding.weight").type->name == "F32");
  CHECK(text_at(model, "comfy.gguf.orig_shape.patch_embedding.weight").find("16, 4, 1, 2, 2") != std::string::npos);
}

TEST_CASE("a dimension that does not fit into the metadata is refused") {
  const auto refused = Bench().add_family("wan").add("x.weight", {1, 1, 1, 1, 3'000'000'000}).open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what ==
        "tensor 'x.weight' has a dimension of 3000000000; at most 2147483647 can be recorded as an int32");
}

TEST_CASE("FP8 weights with scales are refused") {
  const auto refused = Bench().add_family("flux", "F8_E4M3").add("double_blocks.0.x.scale_weight", {1}).open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "'double_blocks.0.x.scale_weight' shows that the weights are FP8 with scales");
}
