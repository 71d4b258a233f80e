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

TEST_CASE("tensors beyond the number of layers are one error") {
  const TwoLayers model;
  Names names = kAll;
  for (const char* name : {"model.layers.2.q.weight", "model.layers.2.k.weight", "model.layers.3.q.weight"})
    names.emplace_back(name);
  CHECK(model.fault(names) ==
        "folder: error: config.json says 2 layers, but the weights have 4 layers: 3 of 8 tensors are beyond, such as "
        "'model.layers.2.q.weight', 'model.layers.2.k.weight', 'model.layers.3.q.weight'\n"
        "  help: use the config.json that belongs to the weights, or correct the number in config.json\n");
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
  // Under another name.
  CHECK(includes(model.fault({TwoLayers::tensor("model.layers.0.q.W_q", "U8"),
                              TwoLayers::tensor("model.layers.0.q.scale"), TwoLayers::tensor("model.layers.0.q.zero")}),
                 "tensor 'model.layers.0.q.W_q' is 4 x 2 of U8: codes of quantized weights (HQQ)"));
}
