// Tests of what trainers add to names, of names that no rule matches, and of codes where weights are expected.
#include "stages/huggingface/map/trainer_names.h"

#include <boost/json/parse.hpp>

#include "stages/huggingface/map/tensor_map.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

using Names = std::vector<std::string>;

// A map of a model with two layers of two matrices.
class TwoLayers {
 public:
  TwoLayers() {
    write_text(folder_.file("a.yaml"),
               "name: m\nlayers: layers\nnames: [{drop: '\\.inv_freq$'}]\ntensors:\n"
               "  - {from: 'model.layers.{layer}.q', to: 'blk.{layer}.q'}\n"
               "  - {from: 'model.layers.{layer}.k', to: 'blk.{layer}.k'}\n"
               "  - {from: 'model.layers.{layer}.table', to: 'blk.{layer}.table', do: [int32]}\n"
               "  - {from: 'linear_{layer}', to: 'mm.{layer}'}\n"
               "  - {from: head, to: output}\n");
    auto read = read_architecture(folder_.file("a.yaml"));
    CAPTURE(read ? "" : render(read.error()));
    REQUIRE(read);
    architecture = std::move(read).value();
    architecture.file = "m";
    facts.emplace("folder", boost::json::parse(R"({"layers": 2})").as_object(), architecture.values);
  }

  static NamedTensor tensor(const std::string& name, const char* type = "F32") {
    const auto source = std::make_shared<SourceFile>(SourceFile{"f", 1 << 20});
    const Shape shape{2, {4, 2, 1, 1}};
    const std::uint64_t bytes = bytes_of(type_named(type), shape).value();
    return {name, expressions::extent(type_named(type), shape, {source, 0, bytes}).value()};
  }
  static std::vector<NamedTensor> tensors(const Names& names) {
    std::vector<NamedTensor> all;
    for (const std::string& name : names) all.push_back(tensor(name));
    return all;
  }

  // Returns the names without what trainers added, then "|" and the notes.
  std::string removed(const Names& names) const {
    auto all = tensors(names);
    const auto notes = remove_trainer_names(architecture, *facts, all);
    REQUIRE(notes);
    std::string text;
    for (const NamedTensor& each : all) text += each.name + " ";
    for (const std::string& note : notes.value()) text += "|" + note;
    return text;
  }
  std::string fault(const std::vector<NamedTensor>& all) const {
    const auto mapped = map_tensors(architecture, *facts, all, "folder");
    return mapped ? "" : render(mapped.error());
  }
  std::string fault(const Names& names) const { return fault(tensors(names)); }

  Architecture architecture;
  std::optional<Facts> facts;

 private:
  TempDir folder_;
};

const Names kAll{"model.layers.0.q.weight", "model.layers.0.k.weight", "model.layers.1.q.weight",
                 "model.layers.1.k.weight", "head.weight"};

Names with_prefix(const std::string& prefix) {
  Names names;
  for (const std::string& name : kAll) names.push_back(prefix + name);
  return names;
}

bool includes(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what trainers add to names is removed") {
  const TwoLayers model;
  const std::string plain = model.removed(kAll);
  CHECK_FALSE(includes(plain, "|"));
  CHECK(model.removed(with_prefix("_orig_mod.")) ==
        plain + "|5 of 5 names of tensors were read without '_orig_mod.', which a trainer added");
  CHECK(model.removed(with_prefix("module.")) ==
        plain + "|5 of 5 names of tensors were read without 'module.', which a trainer added");
  for (const char* prefix : {"model.", "base_model.model.", "module._orig_mod.", "_orig_mod.module."})
    CHECK(model.removed(with_prefix(prefix)).starts_with(plain));
  CHECK(model.removed(with_prefix("model.")) ==
        plain + "|5 of 5 names of tensors were read without 'model.', which architecture 'm' does not have");
  // Names are counted, however often they contain a word.
  CHECK(model.removed({"_orig_mod.model._orig_mod.layers.0.q.weight", "head.weight"}) ==
        "model.layers.0.q.weight head.weight |1 of 2 names of tensors were read without '_orig_mod.', which a trainer "
        "added");
  CHECK(model.removed({"model.layers.0._fsdp_wrapped_module.q.weight", "head.weight"})
            .starts_with("model.layers.0.q.weight head.weight |1 of 2"));
  // Without a head, all names begin with a word that trainers add, too.
  CHECK(model.removed({"model.layers.0.q.weight", "model.layers.1.q.weight"}) ==
        "model.layers.0.q.weight model.layers.1.q.weight ");
  // Removing a word would not make a difference, or two names equal.
  CHECK(model.removed({"module.a.weight", "module.b.weight"}) == "module.a.weight module.b.weight ");
  CHECK(model.removed({"_orig_mod.head.weight", "head.weight"}) == "_orig_mod.head.weight head.weight ");
}

TEST_CASE("names that no rule matches are one error for each cause") {
  const TwoLayers model;
  const std::string unknown = model.fault(with_prefix("actor.policy."));
  CAPTURE(unknown);
  CHECK(includes(unknown,
                 "error: 5 of 5 names begin with 'actor.policy.', which architecture 'm' does not expect, such as "
                 "'actor.policy.model.layers.0.q.weight', 'actor.policy.model.layers.0.k.weight', "
                 "'actor.policy.model.layers.1.q.weight', ...\n"));
  CHECK(includes(unknown,
                 "run `ggufmill architectures new folder --like m -o mine.yaml`, add `names: [{match: "
                 "'^actor\\.policy\\.', with: ''}]"));
  CHECK(unknown.find("error:") == unknown.rfind("error:"));

  const std::string inside = model.fault({"model.layers.0.x.q.weight", "model.layers.1.x.q.weight", "head.weight"});
  CHECK(includes(inside, "2 of 3 names contain 'x'"));
  CHECK(includes(inside, "{match: '\\.x\\.', with: '.'}"));

  Names twice = kAll;
  for (const std::string& name : with_prefix("ema.")) twice.push_back(name);
  CHECK(includes(model.fault(twice), "contains a second model: 5 of 10 names begin with 'ema.'"));
  CHECK(includes(model.fault(twice), "{drop: '^ema\\.'}"));

  Names both = with_prefix("student.");
  for (const std::string& name : with_prefix("teacher.")) both.push_back(name);
  CHECK(includes(model.fault(both), "contains 2 models: names begin with 'student.' and with 'teacher.', such as"));
  CHECK(includes(model.fault(both), "{drop: '^teacher\\.'}, {match: '^student\\.', with: ''}"));
  CHECK(model.fault(both).find("error:") == model.fault(both).rfind("error:"));

  // A word that the model's own names have, or that most names begin with, is not to be dropped.
  CHECK_FALSE(includes(model.fault({"layers.0.x.weight", "layers.1.x.weight", "model.layers.0.q.weight",
                                    "model.layers.1.q.weight", "head.weight"}),
                       "drop: '^layers"));
  CHECK_FALSE(includes(model.fault({"blk.0.x.weight", "blk.1.x.weight", "head.weight"}), "drop: '^blk"));

  Names more = kAll;
  more.insert(more.end(), {"v_head.a.weight", "v_head.a.bias"});
  CHECK(includes(model.fault(more),
                 "no rule in architecture 'm' matches 2 of 7 tensors: 'v_head.a.weight', 'v_head.a.bias'"));
  CHECK(includes(model.fault(more), "{drop: '^v_head\\.'}"));

  CHECK(includes(model.fault({"model.layers.0.q.base_layer.weight", "model.layers.0.q.lora_A.default.weight",
                              "model.layers.0.q.lora_B.default.weight", "head.weight"}),
                 "contains a LoRA adapter that was not merged into the weights: 3 of 4 tensors"));
}

TEST_CASE("what PEFT adds to a model is a part of an adapter, and no word to remove") {
  const TwoLayers model;
  const auto fault_of = [&](const Names& more) {
    Names names{"model.layers.0.q.weight", "model.layers.0.k.weight"};
    names.insert(names.end(), more.begin(), more.end());
    const std::string fault = model.fault(names);
    CAPTURE(fault);
    CHECK(fault.find("error:") == fault.rfind("error:"));
    CHECK_FALSE(includes(fault, "match:"));
    CHECK_FALSE(includes(fault, "drop:"));
    return fault;
  };
  const std::string copies = fault_of({"head.original_module.weight", "head.modules_to_save.default.weight"});
  CHECK(
      includes(copies,
               "contains copies of modules that PEFT trained (modules_to_save) that were not merged into the weights: "
               "2 of 4 tensors, such as 'head.original_module.weight', "
               "'head.modules_to_save.default.weight'\n"));
  CHECK(includes(copies,
                 "help: merge the adapter (`model.merge_and_unload()` of PEFT), save the model, and convert that\n"));
  CHECK(includes(fault_of({"model.layers.1.q.lora_A.default.weight", "head.modules_to_save.default.weight"}),
                 "contains a LoRA adapter and copies of modules that PEFT trained (modules_to_save) that were not"));
  for (const auto& [name, what] : {std::pair("model.layers.1.q.ia3_l.default", "an IA3 adapter that was"),
                                   std::pair("model.layers.1.q.oft_R.default.weight", "an OFT adapter that was"),
                                   std::pair("model.layers.1.q.boft_s.default", "a BOFT adapter that was"),
                                   std::pair("model.layers.1.q.lokr_w1.default", "a LoKr adapter that was"),
                                   std::pair("model.layers.1.q.hada_w2_b.default", "a LoHa adapter that was"),
                                   std::pair("model.layers.1.q.vera_lambda_d.default", "a VeRA adapter that was"),
                                   std::pair("head.trainable_tokens_delta.default", "(trainable_tokens) that were"),
                                   std::pair("prompt_encoder.default.embedding.weight", "a prompt that PEFT trained")})
    CHECK(includes(fault_of({name}), what));
  // The weights below an adapter are those before the training, with and without it.
  CHECK(includes(fault_of({"model.layers.1.q.base_layer.weight", "model.layers.1.k.base_layer.weight"}),
                 "contains weights that PEFT trained an adapter for, but not the adapter: 2 of 4 tensors, such as "));
}

TEST_CASE("a second model is reported with a rule that drops only it") {
  const TwoLayers model;
  Names inside = kAll;
  inside.insert(inside.end(), {"model.layers.0.shadow.q.weight", "model.layers.1.shadow.q.weight"});
  CHECK(includes(model.fault(inside),
                 "contains a second model: 2 of 7 names contain 'shadow', such as "
                 "'model.layers.0.shadow.q.weight', 'model.layers.1.shadow.q.weight', and"));
  CHECK(includes(model.fault(inside), "{drop: '\\.shadow\\.'}"));

  // Only some names exist twice.
  Names one = with_prefix("policy.");
  one.emplace_back("head.weight");
  CHECK(includes(model.fault(one), "5 of 6 names begin with 'policy.', which architecture 'm' does not expect, such"));
  CHECK(includes(model.fault(one), "...; 1 of them would then have the name of others\n"));
  CHECK(includes(model.fault(one), "to remove it, and 'head.weight' without it, run"));
  CHECK(includes(model.fault(one), "{drop: '^head\\.weight$'}, {match: '^policy\\.', with: ''}"));

  // A rule for a word that the model's own names have, too, would change these.
  Names more = kAll;
  more.insert(more.end(), {"model.model.layers.0.q.weight", "model.model.layers.1.q.weight"});
  CHECK_FALSE(includes(model.fault(more), "'^model\\.'"));
}

TEST_CASE("a shard of FSDP is not a model") {
  const TwoLayers model;
  CHECK(includes(model.fault(Names{"_fsdp_wrapped_module._flat_param"}),
                 "is a shard of FSDP, not a model: 1 of 1 tensors, such as '_fsdp_wrapped_module._flat_param', has"));
  CHECK(includes(model.fault(Names{"head.weight", "model.layers.0.flat_param_0", "model.layers.1.flat_param_0"}),
                 "2 of 3 tensors, such as"));
}

TEST_CASE("errors show names as they stand in the file") {
  const TwoLayers model;
  auto all = TwoLayers::tensors(with_prefix("_orig_mod.policy."));
  REQUIRE(remove_trainer_names(model.architecture, *model.facts, all));
  CHECK(includes(model.fault(all),
                 "5 of 5 names begin with 'policy.', which architecture 'm' does not expect, such as "
                 "'_orig_mod.policy.model.layers.0.q.weight'"));
  CHECK(includes(model.fault(all), "\n  the first of them was read as 'policy.model.layers.0.q.weight'\n"));

  all = TwoLayers::tensors(with_prefix("_orig_mod."));
  all.push_back(TwoLayers::tensor("_orig_mod.other.weight"));
  REQUIRE(remove_trainer_names(model.architecture, *model.facts, all));
  CHECK(includes(model.fault(all), "tensor '_orig_mod.other.weight': no rule in architecture 'm' matches it"));
}

TEST_CASE("tensors beyond the number of layers are one error") {
  const TwoLayers model;
  Names names = kAll;
  for (const char* name : {"model.layers.2.q.weight", "model.layers.2.k.weight", "model.layers.3.q.weight"})
    names.emplace_back(name);
  CHECK(model.fault(names) ==
        "folder: error: config.json says 2 layers, but the weights have 4 layers: 3 of 8 tensors are beyond, such as "
        "'model.layers.2.q.weight', 'model.layers.2.k.weight', 'model.layers.3.q.weight'\n"
        "  help: use the config.json that belongs to the weights, or correct the number in config.json\n");
  // Numbers of other lists of modules are not layers, whether or not they are more than those.
  for (const char* name : {"linear_2.weight", "linear_3.weight"}) names.emplace_back(name);
  CHECK(includes(model.fault(names), "but the weights have 4 layers: 3 of 10 tensors are beyond, such as"));
  const std::string other = model.fault(Names{"linear_1.weight", "linear_2.weight", "linear_3.weight"});
  CAPTURE(other);
  CHECK_FALSE(includes(other, "config.json says"));
  CHECK(includes(other, "tensor 'linear_2.weight': no rule in architecture 'm' matches it"));
  CHECK(includes(other, "  'linear_{layer}' would match, but the number of layers is 2\n"));
}

TEST_CASE("integers are not weights, unless the map makes a table of them") {
  const TwoLayers model;
  CHECK(model.fault({TwoLayers::tensor("head.weight"), TwoLayers::tensor("model.layers.0.table", "I32")}).empty());
  for (const char* type : {"I8", "U8", "I32", "U32", "I64"})
    CHECK(
        includes(model.fault({TwoLayers::tensor("head.weight", type)}),
                 std::string("tensor 'head.weight' is 4 x 2 of ") + type +
                     ": codes of quantized weights, which cannot be used as weights, and their scales are missing\n"));
  CHECK(includes(
      model.fault({TwoLayers::tensor("model.layers.0.q.weight", "I8"),
                   TwoLayers::tensor("model.layers.1.q.weight", "I8"),
                   TwoLayers::tensor("model.layers.0.q.weight_scales")}),
      "tensor 'model.layers.0.q.weight' is 4 x 2 of I8, like 1 other: codes of quantized weights (EETQ), which "
      "cannot be used as weights; beside it: 'weight_scales'\n"));
  // 8-bit floats are numbers, unless there are scales beside them.
  const NamedTensor floats = TwoLayers::tensor("head.weight", "F8_E4M3");
  CHECK(model.fault({floats}).empty());
  for (const char* scale : {"head.weight_scale", "head.weight_scale_inv", "head.scale", "head_scale"})
    CHECK(includes(model.fault({floats, TwoLayers::tensor(scale)}),
                   "tensor 'head.weight' is 4 x 2 of F8_E4M3: codes of quantized weights, which cannot be used as "
                   "weights; beside it: '" +
                       std::string(scale).substr(5) + "'\n"));
  CHECK(includes(model.fault({floats, TwoLayers::tensor("head.weight_scale")}), "whose `quantization_config` says"));
  CHECK(includes(model.fault({floats, TwoLayers::tensor("head.input_scale")}), "no rule in architecture 'm'"));
  // Under another name.
  CHECK(includes(model.fault({TwoLayers::tensor("model.layers.0.q.W_q", "U8"),
                              TwoLayers::tensor("model.layers.0.q.scale"), TwoLayers::tensor("model.layers.0.q.zero")}),
                 "tensor 'model.layers.0.q.W_q' is 4 x 2 of U8: codes of quantized weights (HQQ)"));
}
