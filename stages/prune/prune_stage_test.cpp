#include "stages/prune/prune_stage.h"

#include "pipeline/core/importance.h"
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

MetadataValue u32(std::uint64_t value) { return metadata_unsigned(MetadataType::kUint32, value); }

MetadataValue u32s(const std::vector<std::uint64_t>& values) {
  std::vector<MetadataValue> items;
  items.reserve(values.size());
  for (const std::uint64_t value : values) items.push_back(u32(value));
  return metadata_array(MetadataType::kUint32, items);
}

// Returns a model of four layers, with `entries` after the usual keys.
Model four_layers(const std::vector<MetadataEntry>& entries) {
  Model model;
  model.metadata.add("general.architecture", metadata_string("x"));
  model.metadata.add("x.block_count", u32(4));
  for (const MetadataEntry& entry : entries) REQUIRE(model.metadata.add(entry.key, entry.value));
  return model;
}

Model pruned(std::string_view layers, const std::vector<MetadataEntry>& entries) {
  Model model = four_layers(entries);
  LayerSet set;
  REQUIRE(set.add(layers));
  prune_metadata(layer_count(model.metadata, 4).value(), set, model);
  return model;
}

// Returns the value of one key after pruning.
MetadataValue after(std::string_view layers, const std::string& key, MetadataValue value) {
  return *pruned(layers, {{key, std::move(value)}}).metadata.find(key);
}

}  // namespace

TEST_CASE("the last layers can be pruned") {
  CHECK(pruned("{layers: [10]}", kFour) ==
        Names{"token_embd", "blk.0.a", "blk.1.a", "blk.2.a", "blk.3.a", "blk.3.b", "x.blk.0.a"});
}

TEST_CASE("layers of encoders are pruned as well") {
  CHECK(pruned("{layers: 1}", {"blk.0.a", "v.blk.0.a", "v.blk.1.a", "v.blk.2.a", "blk.x.blk.3.a"}) ==
        Names{"blk.0.a", "v.blk.0.a", "v.blk.1.a", "blk.x.blk.2.a"});
}

TEST_CASE("an encoder with more layers counts, but per-layer metadata is that of the model") {
  Model model = four_layers({{"x.attention.head_count_kv", u32s({10, 11, 12, 13})}});
  for (const char* name : {"blk.3.a", "v.blk.5.a"}) model.tensors.push_back(bare_tensor(name));
  const Model after = apply_stage(prune_stage(), "{layers: 1}", model).value();
  CHECK(*after.metadata.find("x.block_count") == u32(5));
  CHECK(*after.metadata.find("x.attention.head_count_kv") == u32s({10, 12, 13}));
  CHECK(5 + after.notes.get(notes::kPrunedLayers) == 4);  // the number of layers before
}

TEST_CASE("layers in the middle can be pruned, and later layers move up") {
  CHECK(pruned("{layers: '1-2'}", kFour) ==
        Names{"token_embd", "blk.0.a", "blk.8.a", "blk.1.a", "blk.1.b", "x.blk.0.a"});
  CHECK(pruned("{layers: [0, '2-3', 5]}", kFour) == Names{"token_embd", "blk.0.a", "blk.6.a"});
  CHECK(pruned("{layers: 0}", kFour)[1] == "blk.0.a");
}

TEST_CASE("only names with blk.N. have layers") {
  CHECK(pruned("{layers: 0}", {"blk.0.a", "blk.1.a", "blk.0", "blk.x.a", "blk.-1.a", "blk.99999999999.a", "blk."}) ==
        Names{"blk.0.a", "blk.0", "blk.x.a", "blk.-1.a", "blk.99999999999.a", "blk."});
}

TEST_CASE("the block count is updated") {
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

TEST_CASE("missing layers are refused") {
  const Error error = refusal("{layers: [1, 11]}", kFour);
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.where == "a.yaml:1:10");
  CHECK(error.what == "layer 11 does not exist");
  CHECK(error.help == "the model has layers 0 to 10");
  CHECK(refusal("{layers: 0}", {"token_embd"}).what ==
        "the model has no layers to prune: no tensor has 'blk.N.' in its name");
}

TEST_CASE("not all layers can be pruned") {
  CHECK(refusal("{layers: '0-1'}", {"blk.0.a", "blk.1.a"}).what == "all 2 layers would be pruned");
}

TEST_CASE("anything but a layer is refused with its position") {
  CHECK(refusal("{layers: [1, -2]}", kFour).where == "a.yaml:1:14");
  CHECK(refusal("{layers: 3-1}", kFour).what.find("range '3-1' ends before it starts") != std::string::npos);
  CHECK(refusal("{layers: []}", kFour).code == ExitCode::kUsage);
  CHECK(refusal("{}", kFour).code == ExitCode::kUsage);
}

TEST_CASE("the block count moves to the end as a uint32") {
  const Model model = pruned("1-2", {{"x.context_length", u32(9)}});
  const auto& entries = model.metadata.entries();
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].key == "x.context_length");
  CHECK(entries[2].key == "x.block_count");
  CHECK(entries[2].value == u32(2));
}

TEST_CASE("per-layer arrays lose the items of pruned layers and keep their position") {
  const Model model = pruned("1", {{"x.attention.head_count_kv", u32s({10, 11, 12, 13})}, {"x.last", u32(1)}});
  CHECK(*model.metadata.find("x.attention.head_count_kv") == u32s({10, 12, 13}));
  CHECK(model.metadata.entries()[1].key == "x.attention.head_count_kv");
  const MetadataValue flags = metadata_array(
      MetadataType::kBool, {metadata_bool(true), metadata_bool(false), metadata_bool(false), metadata_bool(true)});
  CHECK(after("0,3", "x.attention.sliding_window_pattern", flags) ==
        metadata_array(MetadataType::kBool, {metadata_bool(false), metadata_bool(false)}));
}

TEST_CASE("other arrays are unchanged") {
  CHECK(after("0", "x.some", u32s({1, 2, 3})) == u32s({1, 2, 3}));
  CHECK(after("0", "x.rope.dimension_sections", u32s({1, 2, 3, 4})) == u32s({1, 2, 3, 4}));
  CHECK(after("0", "tokenizer.ggml.scores", u32s({1, 2, 3, 4})) == u32s({1, 2, 3, 4}));
  const MetadataValue labels(
      metadata_array(MetadataType::kString, std::vector<MetadataValue>(4, metadata_string("a"))));
  CHECK(after("0", "x.classifier.output_labels", labels) == labels);
}

TEST_CASE("arrays without the prediction layers are per-layer too") {
  const Model model = pruned("0", {{"x.nextn_predict_layers", u32(1)}, {"x.pattern", u32s({1, 2, 3})}});
  CHECK(*model.metadata.find("x.pattern") == u32s({2, 3}));
}

TEST_CASE("counts of first layers lose the pruned ones among them") {
  const MetadataValue two = metadata_unsigned(MetadataType::kUint16, 2);
  CHECK(after("0", "x.leading_dense_block_count", two) == metadata_unsigned(MetadataType::kUint16, 1));
  CHECK(after("2-3", "x.leading_dense_block_count", two) == two);
}

TEST_CASE("counts of last layers lose the pruned ones among them") {
  CHECK(after("3", "x.nextn_predict_layers", u32(1)) == u32(0));
  CHECK(after("2", "x.nextn_predict_layers", u32(1)) == u32(1));
  CHECK(after("2", "x.attention.shared_kv_layers", u32(2)) == u32(1));
  const Model both = pruned("3", {{"x.nextn_predict_layers", u32(1)}, {"x.attention.shared_kv_layers", u32(1)}});
  CHECK(*both.metadata.find("x.attention.shared_kv_layers") == u32(1));
}

TEST_CASE("counts that are larger than the model are accepted") {
  CHECK(after("3", "x.nextn_predict_layers", u32(9)) == u32(8));
  CHECK(after("3", "x.leading_dense_block_count", u32(9)) == u32(8));
  CHECK(after("3", "x.attention.shared_kv_layers", u32(9)) == u32(8));
}

TEST_CASE("a pattern by layer number gives a warning unless the last layers are pruned") {
  const std::vector<MetadataEntry> period = {{"x.full_attention_interval", u32(4)}};
  CHECK(pruned("1", period).warnings.size() == 1);
  CHECK(pruned("2-3", period).warnings.empty());
}

TEST_CASE("the number of layers is the larger of the key and the tensors") {
  Model model = four_layers({});
  CHECK(layer_count(model.metadata, 3).value().layers == 4);
  CHECK(layer_count(model.metadata, 9).value().layers == 9);
  model.metadata.remove("x.block_count");
  CHECK(layer_count(model.metadata, 3).value().layers == 3);
}

TEST_CASE("metadata that cannot count layers is refused") {
  Model model = four_layers({});
  model.metadata.set("x.block_count", metadata_string("four"));
  CHECK(layer_count(model.metadata, 1).error().what == "'x.block_count' is \"four\", not a number of layers");
  model.metadata.set("x.block_count", metadata_unsigned(MetadataType::kUint64, std::uint64_t{1} << 31));
  CHECK(layer_count(model.metadata, 1).error().code == ExitCode::kBadInput);
  model.metadata.set("general.architecture", u32(1));
  CHECK(layer_count(model.metadata, 1).error().code == ExitCode::kBadInput);
}
