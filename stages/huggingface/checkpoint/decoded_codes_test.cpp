// Tests of the codes of MLX and bitsandbytes, against what their packages decode.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstring>
#include <map>

#include "stages/huggingface/checkpoint/quantized_checkpoint.h"
#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

// The tensors of a case in tests/golden/decoded_codes.tsv.
class Case {
 public:
  void add(const std::vector<std::string>& row) {
    const std::string &name = row[1], &type = row[2], &digits = row[4];
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2)
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    Shape shape;
    for (std::size_t at = 0; at < row[3].size(); at = std::min(row[3].find('x', at), row[3].size() - 1) + 1)
      shape.dims[shape.rank++] = std::stoull(row[3].substr(at));
    add(name, type, shape, bytes);
  }

  void add(const std::string& name, const std::string& type, const Shape& shape, const std::string& bytes) {
    const std::string path = folder_.file("tensor-" + std::to_string(count_++));
    write_text(path, bytes);
    const auto source = std::make_shared<SourceFile>(SourceFile{path, bytes.size()});
    auto values = expressions::extent(type_named(type), shape, {source, 0, bytes.size()});
    REQUIRE(values);
    if (name.empty())
      expected = std::move(values).value();
    else
      tensors.push_back({name, std::move(values).value()});
  }

  Result<DecodedCheckpoint> decoded(const std::string& config) const {
    const DecodeOptions options{.target = expected ? expected->type : nullptr};
    return decode_checkpoint(folder_.path(), boost::json::parse(config).as_object(), tensors, options);
  }
  std::string fault(const std::string& config) const {
    const auto result = decoded(config);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ExitCode::kBadInput);
    CHECK_FALSE(result.error().help.empty());
    return result.error().what;
  }

  std::vector<NamedTensor> tensors;
  ExpressionRef expected;

 private:
  TempDir folder_;
  int count_ = 0;
};

std::map<std::string, Case> golden() {
  std::map<std::string, Case> cases;
  for (const auto& row : read_tsv("tests/golden/decoded_codes.tsv").rows) cases[row[0]].add(row);
  return cases;
}

std::string words(std::size_t count) { return std::string(4 * count, '\1'); }

// A module of MLX with rows of 8 words and 2 groups: 8 bits in groups of 16 or 4 bits in groups of 32 or 2 in 64.
void add_module(Case& to, const std::string& name, std::uint64_t rows) {
  to.add(name + ".weight", "U32", Shape{2, {8, rows, 1, 1}}, words(8 * rows));
  to.add(name + ".scales", "F32", Shape{2, {2, rows, 1, 1}}, words(2 * rows));
  to.add(name + ".biases", "F32", Shape{2, {2, rows, 1, 1}}, words(2 * rows));
}

}  // namespace

TEST_CASE("codes of MLX and bitsandbytes have the values that their packages decode") {
  for (const auto& [name, one] : golden()) {
    CAPTURE(name);
    std::string config = "{}";
    if (name.starts_with("mlx")) {
      const std::string bits = name.substr(4, 1), group = name.substr(6, name.find(' ', 6) - 6);
      config = R"({"quantization": {"bits": )" + bits + R"(, "group_size": )" + group + "}}";
    }
    const auto result = one.decoded(config);
    CAPTURE(result ? "" : render(result.error()));
    REQUIRE(result);
    REQUIRE(result.value().tensors.size() == 1);
    const NamedTensor& tensor = result.value().tensors[0];
    CHECK(tensor.name == "a.weight");
    CHECK(tensor.values->shape == one.expected->shape);
    const auto values = expressions::cast(tensor.values, *one.expected->type);
    REQUIRE(values);
    CHECK(expression_values(*values.value()) == expression_values(*one.expected));
  }
}

TEST_CASE("MLX: config.json states bits and group sizes, for modules of their own, too") {
  Case both;
  add_module(both, "a", 3);
  add_module(both, "b", 3);
  const auto columns = [&](const char* config) {
    const auto result = both.decoded(config);
    CAPTURE(result ? "" : render(result.error()));
    REQUIRE(result);
    return std::pair(result.value().tensors[0].values->shape.dims[0], result.value().tensors[1].values->shape.dims[0]);
  };
  using Columns = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(columns(R"({"quantization": {"bits": 4, "group_size": 32}})") == Columns(64, 64));
  CHECK(columns(R"({"quantization_config": {"bits": 2, "group_size": 64}})") == Columns(128, 128));
  CHECK(columns(R"({"quantization_config": {"quant_method": "mlx", "bits": 4, "group_size": 32}})") == Columns(64, 64));
  CHECK(columns(R"({"quantization": {"bits": 4, "group_size": 32, "b": {"bits": 2, "group_size": 64}, "c": false}})") ==
        Columns(64, 128));
  CHECK(both.fault(R"({"quantization": {"bits": 8, "group_size": 32}})") ==
        "tensor 'a.weight': its 8 x 3 words, 2 x 3 scales, and 2 x 3 biases are not codes of 8 bits in groups of 32");
  CHECK(both.fault(R"({"quantization": {"bits": 7, "group_size": 32}})") ==
        "tensor 'a.weight': has codes of 7 bits; MLX has 2, 3, 4, 5, 6, and 8");
}

TEST_CASE("MLX: the shapes of the tensors determine bits that config.json does not state") {
  Case one;
  add_module(one, "layers.0.a", 128);
  one.add("norm.weight", "F32", Shape{1, {64, 1, 1, 1}}, words(64));
  const auto result = one.decoded("{}");
  REQUIRE_FALSE(result);  // 64 is a norm's size, and 128 the number of rows
  CHECK(one.fault("{}") ==
        "does not say how MLX quantized the weights (first in 'layers.0.a.weight'), and their shapes "
        "allow 4 bits in groups of 32, and 2 bits in groups of 64");
  Case other;
  add_module(other, "lm_head", 128);
  const auto decided = other.decoded(R"({"text_config": {"hidden_size": 64}})");
  CAPTURE(decided ? "" : render(decided.error()));
  REQUIRE(decided);
  CHECK(decided.value().tensors[0].values->shape.dims[0] == 64);
}

TEST_CASE("MLX: stacked experts become tensors of their own, quantized or not") {
  Case experts;
  const Shape shape{3, {8, 3, 2, 1}};
  experts.add("layers.0.mlp.switch_mlp.up_proj.weight", "U32", shape, words(48));
  experts.add("layers.0.mlp.switch_mlp.up_proj.scales", "F32", Shape{3, {2, 3, 2, 1}}, words(12));
  experts.add("layers.0.mlp.switch_mlp.up_proj.biases", "F32", Shape{3, {2, 3, 2, 1}}, words(12));
  experts.add("layers.0.block_sparse_moe.switch_mlp.down_proj.weight", "F32", shape, words(48));
  const auto result = experts.decoded(R"({"quantization": {"bits": 4, "group_size": 32}})");
  CAPTURE(result ? "" : render(result.error()));
  REQUIRE(result);
  std::string names;
  for (const NamedTensor& tensor : result.value().tensors)
    names += tensor.name + " " + describe(tensor.values->shape) + "\n";
  CHECK(names ==
        "layers.0.mlp.experts.0.up_proj.weight 64 x 3\nlayers.0.mlp.experts.1.up_proj.weight 64 x 3\n"
        "layers.0.block_sparse_moe.experts.0.w2.weight 8 x 3\nlayers.0.block_sparse_moe.experts.1.w2.weight 8 x 3\n");
}

TEST_CASE("bitsandbytes: the state of a weight fits its codes and factors") {
  const auto fault = [](const std::string& state) {
    Case one;
    one.add("a.weight", "U8", Shape{2, {1, 32, 1, 1}}, std::string(32, '\1'));
    one.add("a.weight.absmax", "F32", Shape{1, {4, 1, 1, 1}}, words(4));
    one.add("a.weight.quant_map", "F32", Shape{1, {16, 1, 1, 1}}, words(16));
    one.add("a.weight.quant_state.bitsandbytes__nf4", "U8", Shape{1, {state.size(), 1, 1, 1}}, state);
    return one.fault("{}");
  };
  CHECK(fault(R"({"blocksize": 4611686018427387904, "shape": [8, 8]})") ==
        "tensor 'a.weight': 64 values in blocks of 4611686018427387904 need 1 factor, but there are 4");
  CHECK(fault(R"({"blocksize": 64, "shape": [8, 8]})") ==
        "tensor 'a.weight': 64 values in blocks of 64 need 1 factor, but there are 4");
  CHECK(fault(R"({"blocksize": 16, "shape": [8, 16]})") ==
        "tensor 'a.weight': 1 x 32 of U8 are not the codes of 4 bits that 128 values of 16 x 8 need");
  CHECK(fault(R"({"blocksize": 16, "shape": [34816, 858001, 308761441]})").find("2^53 values or more") !=
        std::string::npos);
  CHECK(fault(R"({"blocksize": 0, "shape": [8, 8]})").find("`blocksize` and `shape` are not positive numbers") !=
        std::string::npos);
}

TEST_CASE("modes and layouts of MLX and bitsandbytes that are not read are refused") {
  Case mode;
  mode.add("a.weight", "U32", Shape{2, {8, 3, 1, 1}}, words(24));
  mode.add("a.scales", "U8", Shape{2, {2, 3, 1, 1}}, "\1\1\1\1\1\1");
  CHECK(mode.fault(R"({"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}})")
            .starts_with("tensor 'a.weight': is quantized by MLX with scales of U8"));
  Case tiles;
  tiles.add("a.weight", "I8", Shape{2, {2, 2, 1, 1}}, "\1\1\1\1");
  tiles.add("a.SCB", "F32", Shape{1, {2, 1, 1, 1}}, words(2));
  tiles.add("a.weight_format", "U8", Shape{1, {1, 1, 1, 1}}, "\1");
  CHECK(tiles.fault("{}").find("order of a GPU's tiles") != std::string::npos);
}
