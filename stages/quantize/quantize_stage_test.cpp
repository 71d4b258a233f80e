#include "stages/quantize/quantize_stage.h"

#include <algorithm>
#include <cstdlib>

#include "pipeline/core/option_reference.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// A small model with rows of 512. All tensors are F32 unless a test changes them.
struct StageBench {
  Model model;

  StageBench() {
    model.metadata.add("general.architecture", metadata_string("llama"));
    model.metadata.add("llama.block_count", metadata_unsigned(MetadataType::kUint32, 2));
    for (const char* name : {"token_embd.weight", "output.weight", "blk.0.attn_v.weight", "blk.0.ffn_down.weight"})
      add(name, {512, 64});
    add("output_norm.weight", {512});
  }
  Tensor& add(const std::string& name, const std::vector<std::uint64_t>& dims) {
    return model.tensors.emplace_back(bare_tensor(name, dims));
  }
  Result<Model> run(const std::string& yaml) const { return apply_stage(quantize_stage(), yaml, model); }
  Error error(const std::string& yaml) const {
    const auto result = run(yaml);
    REQUIRE_FALSE(result);
    return result.error();
  }
};

const Tensor& tensor(const Model& model, std::string_view name) {
  for (const Tensor& it : model.tensors)
    if (it.name == name) return it;
  FAIL("no tensor " << name);
  std::abort();
}

std::string type(const Result<Model>& model, std::string_view name) {
  if (!model) FAIL(render(model.error()));
  return std::string(tensor(model.value(), name).type->name);
}

std::string reason(const Result<Model>& model, std::string_view name) { return tensor(model.value(), name).reason; }

}  // namespace

TEST_CASE("a recipe decides every tensor and gives the reason") {
  const auto model = StageBench().run("Q4_K_M");
  CHECK(type(model, "output.weight") == "Q6_K");
  CHECK(reason(model, "output.weight") == "mix: class head");
  CHECK(type(model, "token_embd.weight") == "Q4_K");
  CHECK(reason(model, "token_embd.weight") == "Q4_K_M");
  CHECK(type(model, "output_norm.weight") == "F32");
  CHECK(reason(model, "output_norm.weight") == "kept: base: rank_below 2");
  CHECK(model.value().notes.get(notes::kRecipe) == "Q4_K_M");
}

TEST_CASE("the first rule that matches decides") {
  const auto model = StageBench().run(
      "{recipe: Q4_K_M, tensors: [{match: 'ffn', type: Q5_K}, {match: 'ffn_down', type: Q6_K, optional: true}]}");
  CHECK(type(model, "blk.0.ffn_down.weight") == "Q5_K");
  CHECK(reason(model, "blk.0.ffn_down.weight") == "tensors[0]: ffn");
}

TEST_CASE("a recipe that quantizes nothing is a warning") {
  StageBench bench;
  for (Tensor& tensor : bench.model.tensors) tensor.name += ".lora_a";
  const auto model = bench.run("Q4_K_M");
  REQUIRE(model);
  CHECK(model.value().warnings ==
        std::vector<std::string>{"Q4_K_M quantizes none of the 5 tensors: 'output.weight.lora_a', for example, is "
                                 "kept: base: match ^(?!.*weight$)"});
  bench.model.metadata.add("general.type", metadata_string("adapter"));
  CHECK(bench.run("Q4_K_M").value().warnings.at(0).ends_with(
      "; the matrices of an adapter get the type that `outtype` in `source: {lora: ...}` names"));
}

TEST_CASE("patterns are case-sensitive") {
  const StageBench bench;
  CHECK(bench.error("{recipe: Q4_K_M, tensors: [{match: 'FFN', type: Q5_K}]}").what == "no tensor matches 'FFN'");
  CHECK(type(bench.run("{recipe: Q4_K_M, tensors: [{match: '(?i)FFN', type: Q5_K}]}"), "blk.0.ffn_down.weight") ==
        "Q5_K");
}

TEST_CASE("a rule that matches nothing is an error at its pattern") {
  const Error error = StageBench().error("{recipe: Q4_K_M,\n tensors: [{match: 'zzz', type: Q5_K}]}");
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.where == "a.yaml:2:20");
  CHECK(error.what == "no tensor matches 'zzz'");
}

TEST_CASE("a type that weights cannot have is an error at its rule") {
  const Error error = StageBench().error("{recipe: Q4_K_M,\n tensors: [{match: ffn_down, type: Q8_1}]}");
  CHECK(error.where == "a.yaml:2:20");
  CHECK(error.what.starts_with("tensor 'blk.0.ffn_down.weight' would become Q8_1"));
}

TEST_CASE("a pattern of `repack` that matches nothing is an error at its place") {
  GGUFMILL_NEEDS("Q4_K_R4");
  const Error error = StageBench().error("{recipe: Q4_K_M,\n repack: {rows: interleaved, match: zzz}}");
  CHECK(error.where == "a.yaml:2:37");
  CHECK(error.what == "no tensor matches 'zzz'");
}

TEST_CASE("a rule whose tensors an earlier rule has taken is an error") {
  CHECK(StageBench().error("{type: Q4_K, tensors: [{match: ffn, type: Q5_K}, {match: ffn_down, type: Q6_K}]}").what ==
        "the rule 'ffn_down' for Q6_K changes no tensor: an earlier rule decides the only tensor that matches");
}

TEST_CASE("an optional rule that matches nothing is silent") {
  const auto model = StageBench().run("{recipe: Q4_K_M, tensors: [{match: 'zzz', type: Q5_K, optional: true}]}");
  REQUIRE(model);
  CHECK(model.value().warnings.empty());
}

TEST_CASE("a rule for a tensor that is never converted counts as used") {
  const auto model = StageBench().run("{recipe: Q4_K_M, tensors: [{match: 'norm', type: Q5_K}]}");
  CHECK(type(model, "output_norm.weight") == "F32");
}

TEST_CASE("keep leaves a tensor as it is") {
  const auto model = StageBench().run("{recipe: Q4_K_M, tensors: [{match: '^output\\.weight$', type: keep}]}");
  CHECK(type(model, "output.weight") == "F32");
  CHECK(reason(model, "output.weight") == "kept: tensors[0]: ^output\\.weight$");
}

TEST_CASE("a tensor that a rule decides does not count among its kind") {
  StageBench bench;
  for (const char* name : {"blk.1.attn_v.weight", "blk.2.attn_v.weight", "blk.3.attn_v.weight"})
    bench.add(name, {512, 64});
  CHECK(type(bench.run("Q3_K_M"), "blk.2.attn_v.weight") == "Q4_K");  // the third of its kind: the first two get Q5_K
  CHECK(type(bench.run("{recipe: Q3_K_M, tensors: [{match: 'blk.0.attn_v', type: Q8_0}]}"), "blk.2.attn_v.weight") ==
        "Q5_K");
}

TEST_CASE("additional rules take precedence over the recipe's own") {
  const auto model = StageBench().run("{recipe: Q4_K_M, rules: [{class: head, type: Q8_0}]}");
  CHECK(type(model, "output.weight") == "Q8_0");
  CHECK(reason(model, "output.weight") == "rules: class head");
  CHECK(type(model, "token_embd.weight") == "Q4_K");
}

TEST_CASE("pure ignores the recipe's rules") {
  CHECK(type(StageBench().run("{recipe: Q4_K_M, pure: true}"), "output.weight") == "Q4_K");
}

TEST_CASE("rows that are not whole blocks get the fallback") {
  StageBench bench;
  bench.add("blk.0.attn_k.weight", {96, 64});
  const auto model = bench.run("Q4_K_M");
  CHECK(type(model, "blk.0.attn_k.weight") == "Q5_0");
  CHECK(reason(model, "blk.0.attn_k.weight") ==
        "Q4_K_M; the row length 96 is not a multiple of the block size of Q4_K");
  CHECK(tensor(model.value(), "blk.0.attn_k.weight").fallback_from == &type_named("Q4_K"));
  CHECK(tensor(model.value(), "blk.0.ffn_down.weight").fallback_from == nullptr);
}

TEST_CASE("if the fallback does not fit either, the last fallback does") {
  StageBench bench;
  bench.add("blk.0.attn_k.weight", {90, 64});
  CHECK(type(bench.run("Q4_K_M"), "blk.0.attn_k.weight") == "F16");
}

TEST_CASE("rows that no block of 32 columns divides become F16") {
  const char* const recipe = GENERATE("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4_MOE");
  CAPTURE(recipe);
  StageBench bench;
  bench.add("blk.0.attn_k.weight", {90, 64});
  const auto model = bench.run(recipe);
  CHECK(type(model, "blk.0.attn_k.weight") == "F16");
  CHECK(model.value().problems.empty());
}

TEST_CASE("a type without a fallback is a problem, and the tensor is unchanged") {
  StageBench bench;
  bench.add("blk.0.attn_k.weight", {90, 64});
  const auto model = bench.run("Q1_0");
  CHECK(type(model, "blk.0.attn_k.weight") == "F32");
  REQUIRE(model.value().problems.size() == 1);
  CHECK(model.value().problems[0].where == "a.yaml:1:1");
  CHECK(model.value().problems[0].what ==
        "tensor 'blk.0.attn_k.weight' cannot be Q1_0: its rows of 90 elements are not a multiple of the block size "
        "128");
  CHECK(as_for_keys(model.value().problems[0].help) ==
        "types that fit: F16, BF16, F32; choose one: tensors: [{match: ..., type: ...}]");
  CHECK(tensor(model.value(), "blk.0.attn_k.weight").fallback_from == nullptr);
}

TEST_CASE("convolutions of a projector become F16, and what llama.cpp transposes is kept") {
  StageBench bench;
  bench.model.metadata.set("general.architecture", metadata_string("clip"));
  bench.add("a.conv1d.0.weight", {3, 80, 64});
  bench.add("mm.input_projection.weight", {512, 64});
  for (const char* const asked : {"Q8_0", "Q4_0", "Q5_1"}) {
    CAPTURE(asked);
    const auto model = bench.run(asked);
    CHECK(type(model, "a.conv1d.0.weight") == "F16");
    CHECK(type(model, "mm.input_projection.weight") == "F32");
    CHECK(model.value().problems.empty());
  }
}

TEST_CASE("trailing dimensions of 1 are dropped, except for models whose readers need them") {
  StageBench bench;
  bench.add("pos_embed", {512, 64, 1});
  const auto [architecture, dimensions] = GENERATE(std::pair("llama", "512 x 64"), std::pair("sd3", "512 x 64 x 1"));
  const char* const recipe = GENERATE("Q4_K_M", "Q8_0", "COPY");
  CAPTURE(architecture, recipe);
  bench.model.metadata.set("general.architecture", metadata_string(architecture));
  CHECK(describe(tensor(bench.run(recipe).value(), "pos_embed").shape()) == dimensions);
}

TEST_CASE("a type named by the user is used or refused") {
  StageBench bench;
  for (const char* name : {"a.weight", "b.weight", "c.weight", "d.weight", "e.weight"}) bench.add(name, {96, 64});
  bench.add("f.weight", {320, 64});
  const auto model = bench.run("{type: Q6_K}");
  CHECK(type(model, "blk.0.ffn_down.weight") == "Q6_K");
  CHECK(type(model, "a.weight") == "F32");
  REQUIRE(model.value().problems.size() == 1);
  const Error& error = model.value().problems[0];
  CHECK(error.where == "a.yaml:1:8");
  CHECK(error.what ==
        "6 tensors cannot be Q6_K: their rows are not a multiple of the block size 256: 'a.weight' "
        "(96), "
        "'b.weight' (96), 'c.weight' (96), 'd.weight' (96), ...");
  CHECK(error.help.find(
            "types that fit all of them: MXFP4, Q4_0, IQ4_NL, Q4_1, Q5_0, Q5_1, Q8_0, F16, BF16, F32; or allow") == 0);
}

TEST_CASE("misfit: fallback replaces a type named by the user with the recipe's fallback") {
  StageBench bench;
  bench.add("a.weight", {96, 64});
  bench.add("b.weight", {90, 64});
  const auto model = bench.run("{type: Q6_K, misfit: fallback}");
  CHECK(type(model, "a.weight") == "Q8_0");
  CHECK(type(model, "b.weight") == "F16");
  CHECK(tensor(model.value(), "b.weight").fallback_from == &type_named("Q6_K"));
  CHECK(model.value().problems.empty());
  CHECK(type(bench.run("{type: Q8_0, misfit: fallback}"), "b.weight") == "F16");
  CHECK(bench.run("{type: Q1_0, misfit: fallback}").value().problems.size() == 1);  // Q1_0 has no fallback
}

TEST_CASE("a rule's type is used or refused even if the recipe falls back") {
  StageBench bench;
  bench.add("a.weight", {96, 64});
  bench.add("b.weight", {96, 64});
  const auto model = bench.run("{recipe: Q4_K_M,\n tensors: [{match: '^a', type: Q6_K}]}");
  CHECK(type(model, "a.weight") == "F32");
  CHECK(type(model, "b.weight") == "Q5_0");
  REQUIRE(model.value().problems.size() == 1);
  CHECK(model.value().problems[0].where == "a.yaml:2:20");
  CHECK(type(bench.run("{recipe: Q4_K_M, misfit: fallback, tensors: [{match: '^a', type: Q6_K}]}"), "a.weight") ==
        "Q8_0");
  CHECK(type(bench.run("{recipe: Q4_K_M, tensors: [{match: '^a', type: Q6_K, misfit: fallback}]}"), "a.weight") ==
        "Q8_0");
  const auto strict =
      bench.run("{recipe: Q4_K_M, misfit: fallback, tensors: [{match: '^a', type: Q6_K, misfit: refuse}]}");
  REQUIRE(strict.value().problems.size() == 1);
  CHECK(strict.value().problems[0].help.find("misfit") == std::string::npos);
}

TEST_CASE("the type of an additional rule of a recipe is used or refused") {
  StageBench bench;
  bench.add("blk.0.attn_k.weight", {96, 64});
  const auto model = bench.run("{recipe: Q4_K_M, rules: [{class: attn_k, type: Q6_K}]}");
  REQUIRE(model.value().problems.size() == 1);
  CHECK(type(bench.run("{recipe: Q4_K_M, misfit: fallback, rules: [{class: attn_k, type: Q6_K}]}"),
             "blk.0.attn_k.weight") == "Q8_0");
}

TEST_CASE("a bare type applies to all tensors of two dimensions") {
  StageBench bench;
  bench.add("blk.0.ffn_gate_inp.weight", {512, 8});
  for (const char* yaml : {"{type: Q4_K}", "q4_k_s", "{type: q4_k}"}) {
    CAPTURE(yaml);
    const auto model = bench.run(yaml);
    CHECK(type(model, "blk.0.ffn_down.weight") == "Q4_K");
    CHECK(type(model, "output_norm.weight") == "F32");
    if (yaml[0] != '{') continue;
    CHECK(type(model, "output.weight") == "Q4_K");
    CHECK(type(model, "blk.0.ffn_gate_inp.weight") == "Q4_K");
    CHECK(model.value().problems.empty());
  }
}

TEST_CASE("a type without a recipe can be used directly") {
  const auto model = StageBench().run("Q5_K");  // an alias of Q5_K_M
  CHECK(type(model, "output.weight") == "Q6_K");
  CHECK(type(StageBench().run("NVFP4"), "output.weight") == "NVFP4");
}

TEST_CASE("integers are copied") {
  StageBench bench;
  Tensor& ids = bench.add("blk.0.ids.weight", {512, 4});
  set_source(ids, ids.shape(), "I32");
  CHECK(type(bench.run("Q4_K_M"), "blk.0.ids.weight") == "I32");
  CHECK(type(bench.run("{type: Q4_K}"), "blk.0.ids.weight") == "I32");
}

TEST_CASE("integers of up to 16 bits that GGUF does not support become supported integers") {
  StageBench bench;
  Tensor& mask = bench.add("blk.0.mask.weight", {512, 4});
  set_source(mask, mask.shape(), "U16");
  CHECK(type(bench.run("{recipe: Q4_K_M, tensors: [{match: mask, type: I32}]}"), "blk.0.mask.weight") == "I32");
}

TEST_CASE("integers of more than 16 bits are not converted") {
  StageBench bench;
  Tensor& ids = bench.add("blk.0.ids.weight", {512, 4});
  set_source(ids, ids.shape(), "U32");
  CHECK(bench.error("{recipe: Q4_K_M, tensors: [{match: ids, type: I64}]}").what ==
        "tensor 'blk.0.ids.weight' is U32 and would become I64, which holds integers without a scale");
}

TEST_CASE("weights do not become integers") {
  const Error error = StageBench().error("{type: I8}");
  CHECK(error.what.find("would become I8, which holds integers without a scale") != std::string::npos);
  CHECK(error.help.find("Q8_0") != std::string::npos);
}

TEST_CASE("weights do not become types for activations") {
  for (const char* type : {"{type: Q8_1}", "{type: Q8_K}"})
    CHECK(StageBench().error(type).what.find("which llama.cpp creates from activations") != std::string::npos);
}

TEST_CASE("quantized tensors are requantized unless that is forbidden") {
  StageBench bench;
  set_source(bench.model.tensors[3], bench.model.tensors[3].shape(), "Q8_0");
  CHECK(type(bench.run("Q4_K_M"), "blk.0.ffn_down.weight") == "Q4_K");
  const Error error = bench.error("{recipe: Q4_K_M, requantize: false}");
  CHECK(error.what == "tensor 'blk.0.ffn_down.weight' is already Q8_0 and would become Q4_K");
  CHECK(error.where == "a.yaml:1:1");
}

TEST_CASE("a quantized tensor that keeps its type is not requantized") {
  StageBench bench;
  set_source(bench.model.tensors[3], bench.model.tensors[3].shape(), "Q8_0");
  CHECK(bench.run("{recipe: Q8_0, requantize: false}"));
}

TEST_CASE("a type that needs importance is a problem without it") {
  const auto model = StageBench().run("IQ2_XXS");
  CHECK(type(model, "blk.0.ffn_down.weight") == "IQ2_XXS");
  REQUIRE(model.value().problems.size() == 1);  // not for attn_v, token_embd and output, which get other types
  CHECK(model.value().problems[0].what == "no importance matrix is given, but some types need one");
  CHECK(model.value().problems[0].detail == "tensors of such types: 1 IQ2_XXS ('blk.0.ffn_down.weight')");
}

TEST_CASE("tensors without importance are one problem that lists types and counts") {
  const auto model = StageBench().run("{recipe: IQ2_XXS, rules: [{class: attn_v, type: IQ1_S}]}");
  REQUIRE(model.value().problems.size() == 1);
  CHECK(model.value().problems[0].detail ==
        "tensors of such types: 1 IQ1_S, 1 IQ2_XXS ('blk.0.attn_v.weight' and 1 more)");
}

TEST_CASE("a type that needs importance is a problem if the tensor is missing from the file") {
  StageBench bench;
  bench.model.notes.set(notes::kImportanceGiven, true);
  const auto model = bench.run("IQ2_XXS");
  REQUIRE(model.value().problems.size() == 1);
  CHECK(model.value().problems[0].what == "the importance file has no data for some tensors whose types need it");
}

TEST_CASE("importance of the wrong size is a problem if the tensor is converted") {
  StageBench bench;
  const Error fault = input_error("imatrix.gguf", "3 values");
  for (Tensor& tensor : bench.model.tensors) tensor.importance_fault = std::make_shared<const Error>(fault);
  const auto model = bench.run("{recipe: Q4_K_M, tensors: [{match: 'attn_v|ffn_down|token', type: keep}]}");
  REQUIRE(model.value().problems.size() == 1);  // for output.weight only
  CHECK(model.value().problems[0].where == "imatrix.gguf");
  CHECK(bench.run("COPY").value().problems.empty());
}

TEST_CASE("tensors are ordered by layer, or as in the source") {
  const StageBench bench;
  CHECK(bench.run("Q8_0").value().tensors.front().name == "output.weight");
  CHECK(bench.run("{recipe: Q8_0, order: source}").value().tensors.front().name == "token_embd.weight");
}

TEST_CASE("the file type and the quantization version are written at the end") {
  StageBench bench;
  bench.model.metadata.add("general.file_type", metadata_unsigned(MetadataType::kUint32, 1));
  bench.model.metadata.add("z", metadata_bool(true));
  const auto model = bench.run("Q4_K_M");
  const auto& entries = model.value().metadata.entries();
  REQUIRE(entries.size() == 5);
  CHECK(entries[3].key == "general.quantization_version");
  CHECK(entries[3].value == metadata_unsigned(MetadataType::kUint32, 2));
  CHECK(entries[4].key == "general.file_type");
  CHECK(entries[4].value == metadata_unsigned(MetadataType::kUint32, 15));
}

std::uint64_t file_type(const Result<Model>& model) {
  REQUIRE(model);
  const MetadataValue* value = model.value().metadata.find("general.file_type");
  REQUIRE(value);
  CHECK(value->type == MetadataType::kUint32);
  return *as_unsigned(*value);
}

TEST_CASE("a recipe can leave tensors and keys where they are in the source") {
  const TempDir folder;
  write_text(folder.file("mine.yaml"), "{type: Q4_K, file_type: 140, order: source, keys: in_place}");
  StageBench bench;
  bench.model.metadata = {};
  bench.model.metadata.add("general.file_type", metadata_unsigned(MetadataType::kUint32, 1));
  bench.model.metadata.add("general.name", metadata_string("x"));
  const auto model = bench.run("{recipe: '" + folder.file("mine.yaml") + "'}");
  REQUIRE(model);
  CHECK(model.value().tensors.front().name == "token_embd.weight");
  const auto& entries = model.value().metadata.entries();
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].key == "general.file_type");
  CHECK(as_unsigned(entries[0].value) == 140u);
  CHECK(entries[2].key == "general.quantization_version");
  const auto by_layer = bench.run("{recipe: '" + folder.file("mine.yaml") + "', order: layers}");
  CHECK(by_layer.value().tensors.front().name == "output.weight");
}

TEST_CASE("a recipe can count the tensors that rules of the output decide") {
  const TempDir folder;
  const auto second = [&](const char* positions) {
    write_text(folder.file("mine.yaml"), std::string("{type: Q4_K, rules: [{class: ffn_down, order_below: 1, type: "
                                                     "Q8_0}], positions: ") +
                                             positions + "}");
    StageBench bench;
    bench.add("blk.1.ffn_down.weight", {512, 64});
    const auto model =
        bench.run("{recipe: '" + folder.file("mine.yaml") + "', tensors: [{match: 'blk.0.ffn_down', type: Q6_K}]}");
    return type(model, "blk.1.ffn_down.weight");
  };
  CHECK(second("of_decided") == "Q8_0");
  CHECK(second("of_all") == "Q4_K");
}

TEST_CASE("without a file type it is guessed as in the reference") {
  StageBench bench;  // four matrices and a norm
  constexpr std::uint64_t kGuessed = 1024;
  CHECK(file_type(bench.run("COPY")) == kGuessed + 0);
  const auto become = [&](std::size_t tensor, const char* type) {
    set_source(bench.model.tensors[tensor], bench.model.tensors[tensor].shape(), type);
  };
  for (std::size_t i : {0, 1, 2}) become(i, "Q3_K");
  CHECK(file_type(bench.run("COPY")) == kGuessed + 12);  // the number of Q3_K_M
  for (std::size_t i : {0, 1, 2}) become(i, "NVFP4");
  CHECK(file_type(bench.run("COPY")) == kGuessed + 39);
  for (std::size_t i : {0, 1, 2}) become(i, "MXFP4");  // has no number
  CHECK(file_type(bench.run("COPY")) == kGuessed + 0);
}

TEST_CASE("among equally frequent types, the guess is the first to reach its count, layer by layer") {
  StageBench bench;
  bench.model.tensors.pop_back();  // remaining: token_embd, output, blk.0.attn_v, blk.0.ffn_down
  const auto become = [&](const std::vector<const char*>& types) {
    for (std::size_t i = 0; i < 4; ++i) set_source(bench.model.tensors[i], bench.model.tensors[i].shape(), types[i]);
  };
  constexpr std::uint64_t kF16 = 1024 + 1, kBf16 = 1024 + 32;
  become({"F16", "F16", "BF16", "BF16"});
  CHECK(file_type(bench.run("COPY")) == kF16);
  become({"BF16", "F16", "BF16", "F16"});
  CHECK(file_type(bench.run("COPY")) == kBf16);
  std::reverse(bench.model.tensors.begin(), bench.model.tensors.end());
  CHECK(file_type(bench.run("{recipe: COPY, order: source}")) == kBf16);
}

TEST_CASE("the source's file type is kept if the recipe has none") {
  StageBench bench;
  bench.model.metadata.add("general.file_type", metadata_unsigned(MetadataType::kUint32, 7));
  CHECK(file_type(bench.run("COPY")) == 7);
  if (Types().find("Q4_K_R4")) CHECK(file_type(bench.run("{type: Q4_K_R4}")) == 214);  // else in no file
  CHECK(file_type(bench.run("{type: F64}")) == 1024);
}

TEST_CASE("a recipe or a type is needed, not both") {
  const StageBench bench;
  CHECK(bench.error("{pure: true}").what == "neither a recipe nor a type is given");
  CHECK(bench.error("{recipe: Q4_K_M, type: Q4_K}").what == "both a recipe and a type are given");
}

TEST_CASE("keys without an effect are refused") {
  const auto refused = [](const std::string& text) {
    Diagnostics errors;
    const auto document = read_document(text, "job.yaml", errors);
    const auto made = quantize_stage().make(document->root);
    REQUIRE_FALSE(made);
    return made.error();
  };
  const Error pure = refused("{target: {bits: 4}, pure: true}");
  CHECK(pure.where == "job.yaml:1:27");
  CHECK(pure.what == "`pure` uses the type of a recipe for all tensors, but there is no recipe");
  CHECK(refused("{repack: interleaved, pure: true}").what == pure.what);
  CHECK(refused("{target: {bits: 4}, misfit: fallback}").what ==
        "`misfit` is for types that are named, but no recipe, type or rule names any");
  const Error repacked = refused("{repack: interleaved, encoder: search, encoders: {Q4_K: search}, misfit: refuse}");
  CHECK(repacked.what == "`misfit` is for types that are named, but no recipe, type or rule names any");
  REQUIRE(repacked.also.size() == 2);
  CHECK(repacked.also[0].what == "`encoder` has no effect, because `repack` alone converts no tensor");
  CHECK(repacked.also[1].what == "`encoders` has no effect, because `repack` alone converts no tensor");
}

TEST_CASE("an unknown name is an error at its position") {
  const StageBench bench;
  CHECK(bench.error("Q5_M").where == "a.yaml:1:1");
  CHECK(bench.error("{recipe: Q5_M}").where == "a.yaml:1:10");
  CHECK(bench.error("{type: Q5_M}").where == "a.yaml:1:8");
  CHECK(bench.error("{type: Q4_K, tensors: [{match: a, type: Q5_M}]}").where == "a.yaml:1:41");
}

TEST_CASE("an unknown recipe is reported together with other errors") {
  const Error error = StageBench().error("{recipe: Q5_M, encoders: {Q5_M: search}}");
  CHECK(error.what == "unknown recipe 'Q5_M'");
  REQUIRE(error.also.size() == 1);
  CHECK(error.also[0].where == "a.yaml:1:27");
}

TEST_CASE("a base recipe cannot be used for an output") {
  const Error error = StageBench().error("{recipe: mix}");
  CHECK(error.where == "a.yaml:1:10");
  CHECK(error.what == "recipe 'mix' is only a base for other recipes");
}

TEST_CASE("without a default type, a recipe's rules decide and the rest is unchanged") {
  const TempDir folder;
  write_text(folder.file("mine.yaml"), "{rules: [{class: ffn_down, type: Q5_K}]}");
  const auto model = StageBench().run("'" + folder.file("mine.yaml") + "'");
  CHECK(type(model, "blk.0.ffn_down.weight") == "Q5_K");
  CHECK(type(model, "output.weight") == "F32");
  CHECK(reason(model, "output.weight") == "mine");
}

TEST_CASE("adjust sees the type chosen so far") {
  const TempDir folder;
  write_text(folder.file("mine.yaml"),
             "{type: Q4_K, rules: [{class: head, type: Q6_K}], adjust: [{from: Q6_K, type: Q8_0}]}");
  const auto model = StageBench().run("'" + folder.file("mine.yaml") + "'");
  CHECK(type(model, "output.weight") == "Q8_0");
  CHECK(type(model, "blk.0.ffn_down.weight") == "Q4_K");
}

namespace {

Encoder encoder(const Result<Model>& model, std::string_view name) {
  if (!model) FAIL(render(model.error()));
  return tensor(model.value(), name).encoder;
}

using Texts = std::vector<std::string>;

Texts warnings(const Result<Model>& model) {
  if (!model) FAIL(render(model.error()));
  return model.value().warnings;
}

std::string recorded_encoder(const Result<Model>& model) {
  if (!model) FAIL(render(model.error()));
  const MetadataValue* value = model.value().metadata.find("ggufmill.encoder");
  return value ? std::string(as_string(*value).value_or("")) : "none";
}

}  // namespace

TEST_CASE("the encoder is the reference unless another one is asked for") {
  const auto model = StageBench().run("Q4_K_M");
  CHECK(encoder(model, "token_embd.weight").is_reference());
  CHECK(recorded_encoder(model) == "none");
}

TEST_CASE("the encoder of the stage is that of all tensors") {
  const auto model = StageBench().run("{recipe: Q4_K_M, encoder: search}");
  CHECK(encoder(model, "token_embd.weight") == search_encoder());
  CHECK(encoder(model, "output.weight") == search_encoder());
}

TEST_CASE("the encoders in use are recorded in the metadata") {
  CHECK(recorded_encoder(StageBench().run("{recipe: Q4_K_M, encoder: search}")) == "search (effort 3, lattice)");
  CHECK(recorded_encoder(StageBench().run("{recipe: Q4_K_M, encoder: {reference: {lattice: auto}}}")) ==
        "reference with lattice");
}

TEST_CASE("the options of a search replace its defaults") {
  const auto model = StageBench().run("{type: Q4_K, encoder: {search: {effort: 1, weights: ggml, lattice: off}}}");
  CHECK(encoder(model, "token_embd.weight") == Encoder{&search_method(), 1, SearchWeights::kGgml, Lattice::kOff});
}

TEST_CASE("options of earlier versions are errors that say so") {
  const auto error_of = [](const std::string& encoder) {
    return StageBench().error("{type: Q4_K, encoder: " + encoder + "}");
  };
  CHECK(error_of("{search: {gain: row}}").what == "the key 'gain' no longer exists");
  CHECK(error_of("{reference: {gain: row}}").what == "the key 'gain' no longer exists");
  CHECK(error_of("{search: {compensate: rows}}").what == "the key 'compensate' no longer exists");
  CHECK(error_of("{search: {effort: 3, compensate: none}}").help.find("remove it") == 0);
}

TEST_CASE("a rule's encoder overrides that of the stage") {
  const auto model =
      StageBench().run("{recipe: Q4_K_M, encoder: search, tensors: [{match: attn_v, type: Q5_K, encoder: reference}]}");
  CHECK(encoder(model, "blk.0.attn_v.weight").is_reference());
  CHECK(encoder(model, "blk.0.ffn_down.weight") == search_encoder());
}

TEST_CASE("an effort out of range is an error") {
  CHECK(StageBench().error("{type: Q4_K, encoder: {search: {effort: 4}}}").what.find("4") != std::string::npos);
}

TEST_CASE("a search for a type of a rule that has none is refused") {
  const Error error = StageBench().error("{recipe: Q4_K_M, tensors: [{match: attn_v, type: TQ2_0, encoder: search}]}");
  CHECK(error.what == "there is no search for TQ2_0");
  CHECK(error.help.find("Q4_K") != std::string::npos);
}

TEST_CASE("a search for a type of a rule that is not quantized is refused") {
  CHECK(StageBench().error("{recipe: Q4_K_M, tensors: [{match: attn_v, type: F16, encoder: search}]}").what ==
        "there is no search for F16");
}

TEST_CASE("an encoder for tensors that keep their type is refused") {
  CHECK(StageBench().error("{recipe: Q4_K_M, tensors: [{match: attn_v, type: keep, encoder: search}]}").what ==
        "tensors that keep their type are not encoded");
}

TEST_CASE("an encoder that no tensor uses is a warning") {
  CHECK(warnings(StageBench().run("{recipe: F16, encoder: search}")) ==
        Texts{"no tensor is encoded with search (effort 3, lattice): no converted tensor has a type that "
              "supports it"});
}

TEST_CASE("an encoder of a type that no tensor gets is a warning") {
  CHECK(warnings(StageBench().run("{recipe: Q4_K_M, encoders: {Q4_K: search, Q2_K: search}}")) ==
        Texts{"no tensor becomes Q2_K, for which `encoders` gives an encoder"});
}

TEST_CASE("rules that decide no tensor can be warnings") {
  CHECK(warnings(StageBench().run("{recipe: Q4_K_M, unused_rules: warn, tensors: [{match: ffn, type: Q5_K}, {match: "
                                  "ffn_down, type: Q6_K}, {match: ffn_dwn, type: Q6_K}, {match: zzz, type: Q6_K, "
                                  "optional: true}]}")) ==
        Texts{"the rule 'ffn_down' for Q6_K changes no tensor: an earlier rule decides the only tensor that matches",
              "the rule 'ffn_dwn' for Q6_K changes no tensor: no tensor matches; did you mean 'ffn_down'?"});
}

TEST_CASE("quantized tensors that the importance file should have are one warning") {
  StageBench bench;
  bench.model.notes.set(notes::kImportanceGiven, true);
  for (Tensor& tensor : bench.model.tensors) tensor.importance_is_missing = true;
  const auto text = warnings(bench.run("{recipe: Q4_K_M, tensors: [{match: ffn_down, type: keep}]}"));
  REQUIRE(text.size() == 1);
  CHECK(text[0].starts_with("the importance file has no data for "));
  CHECK(text[0].find("ffn_down") == std::string::npos);
  CHECK(text[0].find("'output.weight'") == std::string::npos);  // usual: llama-imatrix skips it
  CHECK(warnings(bench.run("F16")).empty());
}

TEST_CASE("a rule that matches only tensors that the recipe keeps is a warning") {
  CHECK(warnings(StageBench().run("{recipe: Q4_K_M, tensors: [{match: norm, type: Q8_0}]}")) ==
        Texts{"the rule 'norm' for Q8_0 changes no tensor: 'output_norm.weight' is kept: base: rank_below 2"});
  CHECK(warnings(StageBench().run("{recipe: Q4_K_M, tensors: [{match: 'norm|attn_v', type: Q8_0}]}")).empty());
}

TEST_CASE("a sample out of range is an error that shows the range") {
  CHECK(StageBench().error("{target: {bits: 4}, sample: 1/2000000}").what ==
        "'1/2000000' is neither 'all' nor '1/N' with N from 1 to 1048576");
}

TEST_CASE("a search for a single type that has none is refused") {
  CHECK(StageBench().error("{type: TQ2_0, encoder: search}").what == "there is no search for TQ2_0");
}

TEST_CASE("requantizing with the reference removes the name of an earlier encoder") {
  StageBench bench;
  bench.model.metadata.set("ggufmill.encoder", metadata_string("search"));
  CHECK(recorded_encoder(bench.run("Q4_K_M")) == "none");
}

TEST_CASE("a recipe rule's encoder overrides that of the stage") {
  const auto model =
      StageBench().run("{recipe: Q4_K_M, rules: [{class: attn_v, type: Q5_K, encoder: {search: {effort: 3}}}]}");
  CHECK(encoder(model, "blk.0.attn_v.weight").effort == 3);
  CHECK(reason(model, "blk.0.attn_v.weight") == "rules: class attn_v");
  CHECK(encoder(model, "blk.0.ffn_down.weight").is_reference());
}

TEST_CASE("a search for a type of a recipe rule that has none is refused") {
  const Error error = StageBench().error("{recipe: Q4_K_M, rules: [{class: attn_v, type: TQ2_0, encoder: search}]}");
  CHECK(error.what == "there is no search for TQ2_0");
}

TEST_CASE("the encoder of a type is that of all its tensors") {
  const auto model = StageBench().run("{recipe: Q4_K_M, encoder: search, encoders: {Q6_K: reference}}");
  CHECK(encoder(model, "token_embd.weight") == search_encoder());
  CHECK(encoder(model, "output.weight").is_reference());
}

TEST_CASE("a rule's encoder overrides that of its type") {
  const auto model = StageBench().run(
      "{type: Q4_K, encoders: {Q4_K: search}, tensors: [{match: attn_v, type: Q4_K, encoder: reference}]}");
  CHECK(encoder(model, "blk.0.attn_v.weight").is_reference());
  CHECK(encoder(model, "blk.0.ffn_down.weight") == search_encoder());
}

TEST_CASE("a search for a type that has none is refused where the type is named") {
  CHECK(StageBench().error("{recipe: Q4_K_M, encoders: {TQ2_0: search}}").what == "there is no search for TQ2_0");
}

TEST_CASE("all errors in the encoders of types are reported") {
  const Error error = StageBench().error("{recipe: Q4_K_M, encoders: {TQ2_0: search, Q4_K: search, Q4_M: search}}");
  CHECK(error.what == "there is no search for TQ2_0");
  REQUIRE(error.also.size() == 1);
  CHECK(error.also[0].what == "unknown quantization type 'Q4_M'");
}

TEST_CASE("the encoder of an unknown type is refused") {
  CHECK(StageBench().error("{recipe: Q4_K_M, encoders: {Q4_M: search}}").what == "unknown quantization type 'Q4_M'");
}

TEST_CASE("a type without a search keeps the reference if the encoder of a recipe's rule does not concern it") {
  const auto model = StageBench().run("{recipe: TQ2_0, encoder: search, encoders: {Q6_K: search}}");
  CHECK(recorded_encoder(model) == "search (effort 3, lattice)");
}

TEST_CASE("several encoders are recorded in the order of the tensors that have them") {
  CHECK(recorded_encoder(StageBench().run("{recipe: Q4_K_M, encoders: {Q6_K: search, Q4_K: {search: {effort: 1}}}}")) ==
        "search (effort 3, lattice); search (effort 1, lattice)");
}

TEST_CASE("a lattice for a single type whose lattice is not recognised is refused") {
  CHECK(StageBench().error("{type: Q6_K, encoder: {reference: {lattice: auto}}}").what ==
        "there is no lattice for Q6_K");
}

TEST_CASE("the reference recognises no lattice unless asked to") {
  CHECK(encoder(StageBench().run("{type: Q4_0, encoder: {reference: {}}}"), "token_embd.weight").is_reference());
  CHECK(recorded_encoder(StageBench().run("{type: Q4_0, encoder: {reference: {lattice: auto}}}")) ==
        "reference with lattice");
}

namespace {

// Runs a recipe file whose encoder is a search, with more options of the stage.
Result<Model> run_with_searching_recipe(const std::string& options) {
  const TempDir folder;
  write_text(folder.file("mine.yaml"), "{type: Q4_K, encoder: search, rules: [{class: attn_v, type: TQ2_0}]}");
  return StageBench().run("{recipe: '" + folder.file("mine.yaml") + "'" + options + "}");
}

}  // namespace

TEST_CASE("the encoder of a recipe is that of the types that have it, unless the stage has one") {
  const auto model = run_with_searching_recipe("");
  CHECK(encoder(model, "blk.0.ffn_down.weight") == search_encoder());
  CHECK(encoder(model, "blk.0.attn_v.weight").is_reference());
  CHECK(encoder(run_with_searching_recipe(", encoder: reference"), "blk.0.ffn_down.weight").is_reference());
}

TEST_CASE("the encoder of a recipe file is recorded in the metadata") {
  CHECK(recorded_encoder(run_with_searching_recipe("")) == "search (effort 3, lattice)");
  CHECK(recorded_encoder(run_with_searching_recipe(", encoder: reference")) == "none");
}

TEST_CASE("an encoder that the recipe has as well is not a warning") {
  CHECK(warnings(run_with_searching_recipe(", encoder: search")).empty());
}
