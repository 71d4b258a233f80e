#include "stages/prune/prune_stage.h"

#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

using Names = std::vector<std::string>;

Model model_of(const Names& names) {
  Model model;
  model.metadata.add("general.architecture", metadata_string("x"));
  for (const std::string& name : names) model.tensors.push_back(bare_tensor(name));
  return model;
}

Names pruned(std::string_view yaml, const Names& names) {
  const Model model = apply_stage(prune_stage(), yaml, model_of(names)).value();
  Names after;
  for (const Tensor& tensor : model.tensors) after.push_back(tensor.name);
  return after;
}

Error refusal(std::string_view yaml, const Names& names) {
  const Result<Model> after = apply_stage(prune_stage(), yaml, model_of(names));
  REQUIRE_FALSE(after);
  return after.error();
}

const Names kFour = {"token_embd", "blk.0.a", "blk.1.a", "blk.10.a", "blk.2.a", "blk.3.a", "blk.3.b", "x.blk.0.a"};

}  // namespace

TEST_CASE("the last layers go") {
  CHECK(pruned("{layers: [10]}", kFour) ==
        Names{"token_embd", "blk.0.a", "blk.1.a", "blk.2.a", "blk.3.a", "blk.3.b", "x.blk.0.a"});
}

TEST_CASE("layers in the middle go, and those behind move up") {
  CHECK(pruned("{layers: '1-2'}", kFour) ==
        Names{"token_embd", "blk.0.a", "blk.8.a", "blk.1.a", "blk.1.b", "x.blk.0.a"});
  CHECK(pruned("{layers: [0, '2-3', 5]}", kFour) == Names{"token_embd", "blk.0.a", "blk.6.a", "x.blk.0.a"});
  CHECK(pruned("{layers: 0}", kFour)[1] == "blk.0.a");
}

TEST_CASE("only names blk.N. have layers") {
  CHECK(pruned("{layers: 0}", {"blk.0.a", "blk.1.a", "blk.0", "blk.x.a", "blk.-1.a", "blk.99999999999.a", "blk."}) ==
        Names{"blk.0.a", "blk.0", "blk.x.a", "blk.-1.a", "blk.99999999999.a", "blk."});
}

TEST_CASE("the block count follows") {
  const Model model = apply_stage(prune_stage(), "{layers: [0, 1]}", model_of(kFour)).value();
  CHECK(*model.metadata.find("x.block_count") == metadata_unsigned(MetadataType::kUint32, 9));
  CHECK(model.notes.get(notes::kPrunedLayers) == 2);
}

TEST_CASE("importance stays with its tensor") {
  Model model = model_of({"blk.0.a", "blk.1.a"});
  model.tensors[1].importance = std::make_shared<const Importance>();
  const Model after = apply_stage(prune_stage(), "{layers: 0}", model).value();
  REQUIRE(after.tensors.size() == 1);
  CHECK(after.tensors[0].name == "blk.0.a");
  CHECK(after.tensors[0].importance == model.tensors[1].importance);
}

TEST_CASE("layers that are not there are refused") {
  const Error error = refusal("{layers: [1, 11]}", kFour);
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.where == "a.yaml:1:10");
  CHECK(error.what == "layer 11 does not exist");
  CHECK(error.help == "the model has 11 layers, 0 to 10");
  CHECK(refusal("{layers: 0}", {"token_embd"}).what == "the model has no layers to prune: no tensor 'blk.N.*'");
}

TEST_CASE("not all layers may go") {
  CHECK(refusal("{layers: '0-1'}", {"blk.0.a", "blk.1.a"}).what == "all 2 layers would be pruned");
}

TEST_CASE("what is no layer is refused at its place") {
  CHECK(refusal("{layers: [1, -2]}", kFour).where == "a.yaml:1:14");
  CHECK(refusal("{layers: 3-1}", kFour).what.find("range '3-1' ends before it begins") != std::string::npos);
  CHECK(refusal("{layers: []}", kFour).code == ExitCode::kUsage);
  CHECK(refusal("{}", kFour).code == ExitCode::kUsage);
}
