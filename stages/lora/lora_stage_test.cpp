#include "stages/lora/lora_stage.h"

#include <cmath>

#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/expression_values.h"

using namespace ggufmill;

namespace {

using Dims = std::vector<std::uint64_t>;  // row length first
using Floats = std::vector<float>;

Tensor tensor(std::string name, const Dims& dims, Floats values) {
  Tensor made = bare_tensor(std::move(name), dims);
  made.expression = expressions::constant(made.shape(), std::move(values)).value();
  return made;
}

// Returns values without a pattern.
Floats scattered(std::size_t count, float seed) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(seed + 37.0f * static_cast<float>(i));
  return values;
}

// A model with a matrix x.weight of 3 x 2, and an adapter of rank 2 for it.
struct Bench {
  Model model, adapter;

  Bench() {
    model.metadata.add("general.architecture", metadata_string("x"));
    model.tensors = {tensor("x.weight", {3, 2}, {1, 2, 3, 4, 5, 6}), tensor("other.weight", {3, 1}, {7, 8, 9})};
    adapter.metadata.add("general.architecture", metadata_string("x"));
    adapter.metadata.add(std::string(kLoraAlpha), metadata_float(MetadataType::kFloat32, 8));
    adapter.tensors = {tensor("x.weight.lora_a", {3, 2}, {1, 0, 0, 0, 1, 0}),
                       tensor("x.weight.lora_b", {2, 2}, {1, 2, 3, 4})};
  }
  Result<Model> run(const std::string& options = "") const {
    return apply_stage(lora_stage([&](const std::string&, const AdapterBase&) -> Result<Model> { return adapter; }),
                       "{adapter: a.gguf" + options + "}", model);
  }
  Floats values(const std::string& options = "") const {
    const auto merged = run(options);
    CAPTURE(merged ? "" : render(merged.error()));
    REQUIRE(merged);
    return expression_values(*merged.value().tensors[0].expression);
  }
  std::string fault(const std::string& options = "") const {
    const auto merged = run(options);
    REQUIRE_FALSE(merged);
    CHECK(merged.error().where == "a.gguf");
    return merged.error().what;
  }
};

}  // namespace

TEST_CASE("the product of a pair is added with alpha / rank") {
  CHECK(Bench().values() == Floats{1 + 4 * 1, 2 + 4 * 2, 3, 4 + 4 * 3, 5 + 4 * 4, 6});
}

TEST_CASE("the scale multiplies the product") {
  CHECK(Bench().values(", scale: -0.5") == Floats{1 - 2 * 1, 2 - 2 * 2, 3, 4 - 2 * 3, 5 - 2 * 4, 6});
}

TEST_CASE("an alpha of 0 leaves the product as it is") {
  Bench bench;
  bench.adapter.metadata.set(std::string(kLoraAlpha), metadata_float(MetadataType::kFloat32, 0));
  CHECK(bench.values() == Floats{1 + 1, 2 + 2, 3, 4 + 3, 5 + 4, 6});
}

TEST_CASE("tensors without a pair and the types of all are kept") {
  const Bench bench;
  const auto merged = bench.run();
  REQUIRE(merged);
  CHECK(merged.value().tensors[1].expression == bench.model.tensors[1].expression);
  CHECK(merged.value().tensors[0].type == bench.model.tensors[0].type);
}

TEST_CASE("the product of an embedding's pair is transposed") {
  Bench bench;
  bench.model.tensors[0].name = "token_embd.weight";
  // As llama.cpp stores them: A has a row of length 2 for each of 2 tokens, B one for each of 3 columns.
  bench.adapter.tensors = {tensor("token_embd.weight.lora_a", {2, 2}, {1, 2, 3, 4}),
                           tensor("token_embd.weight.lora_b", {2, 3}, {1, 0, 0, 1, 0, 0})};
  CHECK(bench.values() == Floats{1 + 4 * 1, 2 + 4 * 2, 3, 4 + 4 * 3, 5 + 4 * 4, 6});
}

TEST_CASE("several adapters are added and rounded once") {
  Bench bench;
  bench.model.tensors[0] = tensor("x.weight", {3, 2}, Floats(6, 1));
  bench.adapter.tensors[1] = tensor("x.weight.lora_b", {2, 2}, {std::ldexp(1.0f, -26), 0, 0, 0});
  auto merged = bench.run();  // 1 + 2^-24, between two numbers
  REQUIRE(merged);
  bench.model = std::move(merged).value();
  CHECK(bench.values()[0] == 1 + std::ldexp(1.0f, -23));
}

TEST_CASE("a merged matrix is that computed in double precision") {
  constexpr std::size_t kColumns = 33, kRows = 17, kRank = 5;
  const Floats w = scattered(kColumns * kRows, 1), a = scattered(kColumns * kRank, 2), b = scattered(kRank * kRows, 3);
  Bench bench;
  bench.model.tensors[0] = tensor("x.weight", {kColumns, kRows}, w);
  bench.adapter.tensors = {tensor("x.weight.lora_a", {kColumns, kRank}, a),
                           tensor("x.weight.lora_b", {kRank, kRows}, b)};
  const Floats values = bench.values(", scale: 0.7");
  for (std::size_t i = 0; i < values.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < kRank; ++k)
      sum += static_cast<double>(b[i / kColumns * kRank + k]) * a[k * kColumns + i % kColumns];
    const double expected = w[i] + 0.7 * 8 / kRank * sum;
    const float up = std::nextafter(values[i], 9.0f), down = std::nextafter(values[i], -9.0f);
    CAPTURE(i, expected, values[i]);
    CHECK((down <= expected && expected <= up));
  }
}

TEST_CASE("a norm replaces that of the model") {
  Bench bench;
  bench.adapter.tensors.push_back(tensor("other.weight", {3, 1}, {1, 1, 1}));
  const auto merged = bench.run();
  REQUIRE(merged);
  CHECK(expression_values(*merged.value().tensors[1].expression) == Floats{1, 1, 1});
}

TEST_CASE("a pair without a tensor is an error, unless it is ignored") {
  Bench bench;
  bench.model.tensors[0].name = "y.weight";
  CHECK(bench.fault() == "the adapter changes 'x.weight', which the model does not have");
  const auto merged = bench.run(", unmatched: ignore");
  REQUIRE(merged);
  CHECK(merged.value().warnings.size() == 1);
}

TEST_CASE("an adapter for a tensor of another shape is refused") {
  Bench bench;
  bench.model.tensors[0] = tensor("x.weight", {3, 4}, Floats(12));
  CHECK(bench.fault() ==
        "pair of 'x.weight': low_rank: the product of A of 3 x 2 and B of 2 x 2 is 3 x 2, but the tensor is 3 x 4");
}

TEST_CASE("an adapter for another architecture is refused") {
  Bench bench;
  bench.model.metadata.set("general.architecture", metadata_string("y"));
  CHECK(bench.fault() == "the adapter is for the architecture 'x', but the model has 'y'");
}

TEST_CASE("half of a pair of low-rank factors is refused") {
  Bench bench;
  bench.adapter.tensors.pop_back();
  CHECK(bench.fault() == "x.weight.lora_b is missing");
}

TEST_CASE("a model without pairs is not an adapter") {
  Bench bench;
  bench.adapter.tensors = {bare_tensor("x.weight")};
  CHECK(bench.fault() == "contains no pairs of tensors *.lora_a and *.lora_b");
}

TEST_CASE("an adapter without alpha is refused") {
  Bench bench;
  bench.adapter.metadata = {};
  CHECK(bench.fault() == "adapter.lora.alpha is missing or not a number");
}
