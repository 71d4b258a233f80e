// Tests of adapters that are read or refused, and of the matrices that result from a map's operations on a product.
#include "stages/huggingface/checkpoint/adapter.h"

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

using Dims = std::vector<std::uint64_t>;  // row length first

const std::string kQ = "base_model.model.model.layers.0.self_attn.q_proj.";

CheckpointTensor tensor(std::string name, const Dims& dims) {
  Shape shape;
  for (const std::uint64_t dim : dims) shape.dims[shape.rank++] = dim;
  std::vector<float> values(shape.elements());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return {std::move(name), expressions::constant(shape, std::move(values)).value(), {dims.rbegin(), dims.rend()}};
}

// A folder with an adapter of rank 2 for a matrix of 4 x 6.
struct Given {
  TempDir folder;
  std::string config = R"({"lora_alpha": 4, "r": 2})";
  std::vector<CheckpointTensor> tensors{tensor(kQ + "lora_A.weight", {4, 2}), tensor(kQ + "lora_B.weight", {2, 6})};

  Result<Adapter> read() const {
    write_text(folder.file("adapter_config.json"), config);
    write_text(folder.file("adapter_model.safetensors"), "");
    return read_adapter(folder.path(), [&](const std::string&, const MissingFiles&) -> Result<Checkpoint> {
      return Checkpoint{{}, tensors};
    });
  }
  std::string fault() const {
    const auto adapter = read();
    REQUIRE_FALSE(adapter);
    CHECK(adapter.error().code == ExitCode::kBadInput);
    CHECK(adapter.error().where.starts_with(folder.path().string()));
    return adapter.error().what;
  }
};

std::string fault_with(const std::string& config) {
  Given given;
  given.config = config;
  return given.fault();
}

std::string fault_with(std::vector<CheckpointTensor> tensors) {
  Given given;
  given.tensors = std::move(tensors);
  return given.fault();
}

// A product of a matrix A of 2 rows of 4 and a B of 6 rows of 2.
ExpressionRef product() {
  return expressions::low_rank(nullptr, tensor("a", {4, 2}).values, tensor("b", {2, 6}).values, 1).value();
}

}  // namespace

TEST_CASE("a pair is read as a product under the base's name") {
  const auto adapter = Given().read();
  REQUIRE(adapter);
  REQUIRE(adapter.value().tensors.size() == 1);
  CHECK(adapter.value().tensors[0].name == "model.layers.0.self_attn.q_proj.weight");
  CHECK(describe(adapter.value().tensors[0].values->shape) == "4 x 6");
}

TEST_CASE("a folder without adapter_config.json is not an adapter") {
  const TempDir folder;
  const auto adapter = read_adapter(folder.path(), {});
  REQUIRE_FALSE(adapter);
  CHECK(adapter.error().what == "has no adapter_config.json");
}

TEST_CASE("a folder without weights is incomplete") {
  const TempDir folder;
  write_text(folder.file("adapter_config.json"), R"({"lora_alpha": 4})");
  const auto adapter = read_adapter(folder.path(), {});
  REQUIRE_FALSE(adapter);
  CHECK(adapter.error().what == "has neither adapter_model.safetensors nor adapter_model.bin");
}

TEST_CASE("settings that a product cannot express are refused") {
  CHECK(fault_with(R"({"lora_alpha": 4, "use_dora": true})") ==
        "the adapter uses DoRA, which also rescales every row of a weight; no product of two matrices does that");
  CHECK(fault_with(R"({"lora_alpha": 4, "peft_type": "LOHA"})") == R"(the adapter is of type '"LOHA"', not LORA)");
  CHECK(fault_with(R"({"lora_alpha": 4, "layer_replication": [[0, 2]]})") ==
        "'layer_replication' is set, which is not supported");
}

TEST_CASE("alpha must be a positive number") {
  CHECK(fault_with("{}") == "'lora_alpha' is missing");
  CHECK(fault_with(R"({"lora_alpha": 0})") == "'lora_alpha' is '0', not a positive number that F32 can represent");
  CHECK(fault_with(R"({"lora_alpha": "16"})") ==
        "'lora_alpha' is '\"16\"', not a positive number that F32 can represent");
  CHECK(fault_with(R"({"lora_alpha": 4, "alpha_pattern": {"q_proj": 0}})") ==
        "'alpha_pattern.q_proj' is '0', not a positive number that F32 can represent");
}

TEST_CASE("alpha must be representable in F32 after scaling") {
  CHECK(fault_with(R"({"lora_alpha": 1e-50})") ==
        "'lora_alpha' is '1e-50', not a positive number that F32 can represent");
  CHECK(fault_with(R"({"lora_alpha": 3e38, "use_rslora": true})") ==
        "'lora_alpha' times the root of the rank (use_rslora) is too large for F32");
  CHECK(fault_with(R"({"lora_alpha": 1e30, "alpha_pattern": {"q_proj": 1e-38}})") ==
        "the alpha of 'model.layers.0.self_attn.q_proj.weight' differs too much from 'lora_alpha'");
}

TEST_CASE("flags of another type are refused instead of ignored") {
  for (const char* const key : {"use_dora", "use_rslora", "fan_in_fan_out"})
    CHECK(fault_with(fmt::format(R"({{"lora_alpha": 4, "{}": "true"}})", key)) ==
          fmt::format(R"('{}' is '"true"', not true or false)", key));
  CHECK(fault_with(R"({"lora_alpha": 4, "layer_replication": {"a": 1}})") ==
        "'layer_replication' is set, which is not supported");
}

TEST_CASE("halves of a pair must be matrices of floats with values") {
  CHECK(fault_with({tensor(kQ + "lora_A.weight", {4, 2, 1}), tensor(kQ + "lora_B.weight", {2, 6})}) ==
        "'" + kQ + "lora_A.weight' is F32 of 4 x 2 x 1, not a matrix of F32, F16, or BF16");
}

TEST_CASE("half of a pair in an adapter is refused") {
  CHECK(fault_with({tensor(kQ + "lora_A.weight", {4, 2})}) ==
        "lora_B of 'model.layers.0.self_attn.q_proj.weight' is missing");
}

TEST_CASE("the ranks of a pair must agree") {
  CHECK(fault_with({tensor(kQ + "lora_A.weight", {4, 2}), tensor(kQ + "lora_B.weight", {3, 6})}) ==
        "pair of 'model.layers.0.self_attn.q_proj.weight': low_rank: A of 4 x 2 and B of 3 x 6 do not have the same "
        "rank");
}

TEST_CASE("the name that an adapter has in its model is not part of names") {
  Given given;
  const std::string norm = "base_model.model.model.layers.0.input_layernorm.";
  given.tensors = {tensor(kQ + "lora_A.default.weight", {4, 2}),
                   tensor(kQ + "lora_B.default.weight", {2, 6}),
                   tensor(kQ + "base_layer.weight", {4, 6}),
                   tensor(kQ + "base_layer.bias", {6}),
                   tensor("base_model.model.model.embed.lora_embedding_A.default", {4, 2}),
                   tensor("base_model.model.model.embed.lora_embedding_B.default", {2, 6}),
                   tensor(norm + "original_module.weight", {4}),
                   tensor(norm + "modules_to_save.default.weight", {4})};
  const auto adapter = given.read();
  CAPTURE(adapter ? "" : render(adapter.error()));
  REQUIRE(adapter);
  std::string names;
  for (const NamedTensor& each : adapter.value().tensors) names += each.name + " ";
  CHECK(names == "model.layers.0.input_layernorm.weight model.layers.0.self_attn.q_proj.weight model.embed.weight ");
  CHECK(adapter.value().embeddings == std::vector<std::string>{"model.embed.weight"});

  CHECK(fault_with({tensor(kQ + "lora_A.default.weight", {4, 2}), tensor(kQ + "lora_A.other.weight", {4, 2})}) ==
        "contains several adapters: 'default' and 'other'");
}

TEST_CASE("tensors that belong to no pair are refused") {
  CHECK(fault_with({tensor(kQ + "lora_magnitude_vector", {6})}) ==
        "'" + kQ + "lora_magnitude_vector' is neither a lora_A nor a lora_B tensor");
}

TEST_CASE("another alpha of a module scales B") {
  Given given;
  given.config = R"({"lora_alpha": 4, "alpha_pattern": {"q_proj": 8}})";
  const auto adapter = given.read();
  REQUIRE(adapter);
  CHECK(expression_values(*pair_of(*adapter.value().tensors[0].values, PairUse::kStored).value().b)[1] == 4);
}

TEST_CASE("rows of a product are those of B") {
  const auto pair = pair_of(*expressions::slice(product(), 1, 2, 3).value(), PairUse::kStored);
  REQUIRE(pair);
  CHECK(describe(pair.value().a->shape) == "4 x 2");
  CHECK(expression_values(*pair.value().b) == std::vector<float>{5, 6, 7, 8, 9, 10});
}

TEST_CASE("columns of a product are those of A") {
  const auto pair = pair_of(*expressions::slice(product(), 0, 1, 2).value(), PairUse::kStored);
  REQUIRE(pair);
  CHECK(expression_values(*pair.value().a) == std::vector<float>{2, 3, 6, 7});
  CHECK(describe(pair.value().b->shape) == "2 x 6");
}

TEST_CASE("groups of a product's columns are reordered in A") {
  const auto reordered = [](const Shape& cut, std::vector<std::uint32_t> order) {
    ExpressionRef values = expressions::reshape(product(), cut).value();
    values = expressions::transpose(std::move(values), std::move(order)).value();
    return pair_of(*expressions::reshape(std::move(values), Shape{2, {4, 6, 1, 1}}).value(), PairUse::kStored);
  };
  const auto pair = reordered(Shape{3, {2, 2, 6, 1}}, {1, 0, 2});
  REQUIRE(pair);
  CHECK(expression_values(*pair.value().a) == std::vector<float>{1, 3, 2, 4, 5, 7, 6, 8});
  CHECK(expression_values(*pair.value().b) == expression_values(*tensor("b", {2, 6}).values));
  CHECK(!pair.value().swapped);
  // Columns are exchanged with rows.
  CHECK(!reordered(Shape{3, {4, 2, 3, 1}}, {1, 0, 2}));
}

TEST_CASE("transposing a product exchanges its matrices") {
  const auto pair = pair_of(*expressions::transpose(product(), {1, 0}).value(), PairUse::kStored);
  REQUIRE(pair);
  CHECK(pair.value().swapped);
  CHECK(describe(pair.value().a->shape) == "6 x 2");
  CHECK(describe(pair.value().b->shape) == "2 x 4");
}

TEST_CASE("the matrices of a split product are transposed only to be merged") {
  Shape heads;  // 3 of 4 x 2
  heads.rank = 3;
  heads.dims = {4, 2, 3, 1};
  const auto split = expressions::reshape(product(), heads);
  REQUIRE(split);
  const auto turned = expressions::transpose(split.value(), {1, 0, 2});
  REQUIRE(turned);
  const auto stored = pair_of(*turned.value(), PairUse::kStored);
  REQUIRE_FALSE(stored);
  CHECK(stored.error().what ==
        "transpose to 2 x 4 x 3 cannot be applied to the two matrices of an adapter: it exchanges columns with another "
        "dimension");
  const auto merged = pair_of(*turned.value(), PairUse::kMerged);
  REQUIRE(merged);
  const auto again = expressions::low_rank(nullptr, merged.value().a, merged.value().b, 1);
  REQUIRE(again);
  CHECK(expression_values(*again.value()) == expression_values(*turned.value()));
}

TEST_CASE("a product with a function of its values has no matrices") {
  const auto pair = pair_of(*expressions::map(product(), *find_map_function("add"), 1).value(), PairUse::kStored);
  REQUIRE_FALSE(pair);
  CHECK(pair.error().what ==
        "map to 4 x 6 cannot be applied to the two matrices of an adapter: only products with a number are possible");
}

TEST_CASE("another rank in adapter_config.json than that of the matrices is a warning") {
  Given given;
  given.config = R"({"lora_alpha": 4, "r": 8})";
  const auto adapter = given.read();
  REQUIRE(adapter);
  CHECK(adapter.value().warnings ==
        std::vector{fmt::format("{}: 'r' is 8, but the matrices of 'model.layers.0.self_attn.q_proj.weight' have the "
                                "rank 2, which is used",
                                given.folder.file("adapter_config.json"))});
  given.config = R"({"lora_alpha": 4, "r": 8, "rank_pattern": {"q_proj": 2}})";
  CHECK(given.read().value().warnings.empty());
}
