// Tests of checkpoints with quantized weights, against plain loops.
#include "stages/huggingface/checkpoint/quantized_checkpoint.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cmath>
#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

class Weights {
 public:
  explicit Weights(const std::string& quantization)
      : config_{{"quantization_config", boost::json::parse(quantization)}} {}

  // `dims`: fastest first.
  template <class Number>
  Weights& add(const std::string& name, const char* type, const std::vector<std::uint64_t>& dims,
               const std::vector<Number>& numbers) {
    std::string bytes(numbers.size() * sizeof(Number), '\0');
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    const std::string path = folder_.file("tensor-" + std::to_string(tensors_.size()));
    write_text(path, bytes);
    Shape shape;
    for (const std::uint64_t dim : dims) shape.dims[shape.rank++] = dim;
    const auto source = std::make_shared<SourceFile>(SourceFile{path, bytes.size()});
    auto values = expressions::extent(type_named(type), shape, {source, 0, bytes.size()});
    REQUIRE(values);
    tensors_.push_back({name, std::move(values).value()});
    return *this;
  }

  Result<DecodedCheckpoint> decoded(Blocks blocks = Blocks::kKeep) const {
    return decode_checkpoint(folder_.path(), config_, tensors_, {.blocks = blocks, .sharded = sharded});
  }
  // Returns the values of the only tensor, which must have this name.
  std::vector<float> values(const std::string& name = "a.weight") const {
    const auto result = decoded();
    CAPTURE(result ? "" : render(result.error()));
    REQUIRE(result);
    REQUIRE(result.value().tensors.size() == 1);
    CHECK(result.value().tensors[0].name == name);
    return expression_values(*result.value().tensors[0].values);
  }
  std::string fault() const {
    const auto result = decoded();
    if (result) return "";
    CHECK(result.error().code == ExitCode::kBadInput);
    return result.error().what;
  }

  std::unordered_map<std::string, ShardedRows> sharded;

 private:
  TempDir folder_;
  boost::json::object config_;
  std::vector<NamedTensor> tensors_;
};

using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<std::int32_t>;

constexpr std::uint8_t kOne = 0x38, kTwo = 0x40, kThree = 0x44;  // in F8_E4M3

// Packs 4-bit integers in 32-bit words, the first in the lowest bits.
Words packed(const std::vector<unsigned>& integers) {
  Words words(integers.size() / 8);
  for (std::size_t i = 0; i < integers.size(); ++i)
    words[i / 8] = static_cast<std::int32_t>(static_cast<std::uint32_t>(words[i / 8]) | integers[i] << (i % 8 * 4));
  return words;
}

// Returns arbitrary 4-bit numbers.
std::vector<unsigned> some(std::size_t count, unsigned seed) {
  std::vector<unsigned> integers;
  for (std::size_t i = 0; i < count; ++i) integers.push_back((seed = seed * 1103515245 + 12345) >> 16 & 15);
  return integers;
}

}  // namespace

TEST_CASE("FP8 with scales of blocks, rows, and the tensor") {
  const Bytes weights{kOne, kTwo, kThree, kOne, kTwo, kThree};  // 3 columns, 2 rows
  CHECK(Weights(R"({"quant_method": "fp8", "weight_block_size": [1, 2]})")
            .add("a.weight", "F8_E4M3", {3, 2}, weights)
            .add("a.weight_scale_inv", "F32", {2, 2}, std::vector<float>{1, 10, 100, 1000})
            .add("a.activation_scale", "F32", {1}, std::vector<float>{5})
            .values() == std::vector<float>{1, 2, 30, 100, 200, 3000});
  const std::string compressed =
      R"({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"g": {"weights": {}}}})";
  CHECK(Weights(compressed)
            .add("a.weight", "F8_E4M3", {3, 2}, weights)
            .add("a.weight_scale", "F32", {1, 2}, std::vector<float>{10, 100})
            .values() == std::vector<float>{10, 20, 30, 100, 200, 300});
  CHECK(Weights(R"({"quant_method": "modelopt", "quant_algo": "FP8"})")
            .add("a.weight", "F8_E4M3", {3, 2}, weights)
            .add("a.weight_scale", "F32", {1}, std::vector<float>{10})
            .add("a.input_scale", "F32", {1}, std::vector<float>{3})
            .values() == std::vector<float>{10, 20, 30, 10, 20, 30});
  const auto result = Weights(compressed)
                          .add("a.weight", "F8_E4M3", {3, 2}, weights)
                          .add("a.weight_scale", "F32", {1, 2}, std::vector<float>{10, 100})
                          .decoded();
  CHECK(result.value().tensors[0].was_fp8);
}

TEST_CASE("rows that were distributed over ranks are scaled by rank and put together by part") {
  // Two ranks of three rows: two of the first part, one of the second. Blocks have two rows.
  struct Sharded : Weights {
    explicit Sharded(const std::vector<float>& scales, std::vector<std::uint64_t> parts = {4, 2})
        : Weights(R"({"quant_method": "fp8", "weight_block_size": [2, 1]})") {
      add("a.weight", "F8_E4M3", {1, 6}, Bytes{kOne, kTwo, kThree, kOne, kTwo, kThree});
      add("a.weight_scale_inv", "F32", {1, scales.size()}, scales);
      sharded["a.weight"] = {std::move(parts), {8, 2}};
    }
  };
  CHECK(Sharded({1, 10, 100, 1000}).values() == std::vector<float>{1, 2, 100, 200, 30, 3000});
  // As many scales as without ranks.
  CHECK(Sharded({1, 10, 100}).values() == std::vector<float>{1, 2, 30, 10, 200, 300});
  CHECK(Sharded({1, 10, 100, 1000}, {4, 1}).fault() == "tensor 'a.weight': has 6 rows, but its parts have 4 + 1");
  CHECK(Sharded({1, 10, 100, 1000}, {3, 3}).fault() == "tensor 'a.weight': 3 rows are not a multiple of 2 ranks");
}

TEST_CASE("FP8 with powers of two as scales of blocks of 128 rows and columns, with or without a configuration") {
  constexpr std::size_t kColumns = 129;
  const Bytes weights(2 * kColumns, kThree), exponents{128, 0};
  for (const char* config : {R"({"quant_method": "fp8"})", "{}"}) {
    Weights checkpoint(config);
    checkpoint.add("a.weight", "F8_E4M3", {kColumns, 2}, weights).add("a.scale", "U8", {2, 1}, exponents);
    const std::vector<float> values = checkpoint.values();
    CHECK(std::ranges::count(values, 6.0f) == 2 * (kColumns - 1));
    CHECK(values[kColumns - 1] == std::ldexp(3.0f, -127));
    CHECK(checkpoint.decoded().value().tensors[0].was_fp8);
  }
  CHECK(Weights("{}")
            .add("a.weight", "F8_E4M3", {3, 2}, Bytes(6, kOne))
            .add("a.scale", "U8", {2, 1}, exponents)
            .fault()
            .starts_with("tensor 'a.weight': "));
}

TEST_CASE("with a store_dtype, MXFP4 has the scales' usual name, beside weights of FP8") {
  const auto config = [](int block) {
    return R"({"quant_method": "fp8", "weight_block_size": [1, 3], "store_dtype": "mxfp4", "mxfp4_block_size": )" +
           std::to_string(block) + "}";
  };
  Weights weights(config(32));
  weights.add("a.weight", "U8", {32, 2}, Bytes(2 * 32, 0x21)).add("a.weight_scale", "U8", {2, 2}, Bytes(4, 127));
  weights.add("b.weight", "F8_E4M3", {3, 1}, Bytes{kOne, kTwo, kThree});
  weights.add("b.weight_scale_inv", "F32", {1, 1}, std::vector<float>{10});
  const auto decoded = weights.decoded();
  REQUIRE(decoded);
  CHECK(decoded.value().has_mxfp4);
  REQUIRE(decoded.value().tensors.size() == 2);
  CHECK(decoded.value().tensors[0].values->type->name == "MXFP4");
  CHECK(expression_values(*decoded.value().tensors[1].values) == std::vector<float>{10, 20, 30});
  CHECK(Weights(config(16)).fault() ==
        "'mxfp4_block_size' in the quantization config is 16, but blocks of MXFP4 have 32 elements");
}

TEST_CASE("weights in NVFP4 are marked if their module's activations are not quantized") {
  const auto marked = [](const std::string& config, const std::string& module) {
    Weights weights(config);
    weights.add(module + ".weight", "U8", {32, 1}, Bytes(32, 0x21))
        .add(module + ".weight_scale", "F8_E4M3", {4, 1}, Bytes(4, kOne));
    const auto decoded = weights.decoded();
    CAPTURE(decoded ? "" : render(decoded.error()));
    REQUIRE(decoded);
    CHECK(decoded.value().is_nvfp4);
    return decoded.value().tensors.at(0).weights_only;
  };
  const auto mixed = [](const std::string& module) {
    return R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {")" + module +
           R"(": {"quant_algo": "W4A16_NVFP4"}}})";
  };
  CHECK(marked(R"({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"})", "x.a"));
  CHECK(!marked(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", "x.a"));
  CHECK(marked(mixed("x.a"), "x.a"));
  CHECK(marked(mixed("x"), "x.a"));
  CHECK(marked(mixed("x.experts"), "x.experts.3.a"));
  CHECK(!marked(R"({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "quantized_layers": {
      "x.a": {"quant_algo": "NVFP4"}}})",
                "x.a"));
  CHECK(Weights(mixed("x.b")).add("x.a", "F32", {1}, std::vector<float>{1}).fault() ==
        "'quantized_layers' has 'x.b', but the checkpoint has no such module");
}

TEST_CASE("MXFP4 is repacked under the names of DeepSeek V4 and of compressed-tensors") {
  const Bytes pairs(2 * 32, 0x21), exponents(4, 127);  // 2 rows of 64 columns, blocks of 32
  const auto check_repacked = [](const Weights& weights) {
    const auto decoded = weights.decoded();
    REQUIRE(decoded);
    CHECK(decoded.value().has_mxfp4);
    REQUIRE(decoded.value().tensors.size() == 1);
    CHECK(decoded.value().tensors[0].name == "a.weight");
    CHECK(decoded.value().tensors[0].values->type->name == "MXFP4");
    CHECK(describe(decoded.value().tensors[0].values->shape) == "64 x 2");
  };
  check_repacked(Weights("{}").add("a.weight", "I8", {32, 2}, pairs).add("a.scale", "U8", {2, 2}, exponents));
  const std::string packed_config = R"({"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"})";
  check_repacked(Weights(packed_config)
                     .add("a.weight_packed", "U8", {32, 2}, pairs)
                     .add("a.weight_scale", "U8", {2, 2}, exponents));
  CHECK(Weights(packed_config).add("a.weight_packed", "U8", {32, 2}, pairs).fault() ==
        "tensor 'a.weight_scale' is missing");
}

TEST_CASE("missing or mismatched scales") {
  const Bytes weights{kOne, kTwo, kThree, kOne, kTwo, kThree};
  CHECK(Weights(R"({"quant_method": "fp8", "weight_block_size": [1, 2]})")
            .add("a.weight_scale_inv", "F32", {2, 2}, std::vector<float>{1, 10, 100, 1000})
            .fault() == "tensor 'a.weight' is missing, but its scales, 'a.weight_scale_inv', exist");
  for (const char* block : {"[0, 0]", "[-1, 2]", "[2, 2]", "[9223372036854775807, 1]", "[1, 2, 3]"})
    CHECK(Weights(R"({"quant_method": "fp8", "weight_block_size": )" + std::string(block) + "}")
              .add("a.weight", "F8_E4M3", {3, 2}, weights)
              .add("a.weight_scale_inv", "F32", {2, 2}, std::vector<float>{1, 10, 100, 1000})
              .fault()
              .starts_with("tensor 'a.weight': "));
  CHECK(Weights(R"({"quant_method": "aqlm", "nbits_per_codebook": 16})").fault() ==
        "unknown quantization method 'aqlm' with 16 bits");
  CHECK(Weights(R"({"quant_method": "compressed-tensors", "format": "x", "config_groups": {}})").fault() ==
        "config_groups is not an object with a group for each kind of weight");
  CHECK(Weights(R"({"quant_method": "gptq", "bits": 3})").fault() == "'bits' in the quantization config is 3");
  CHECK(Weights(R"({"quant_method": "awq", "bits": 8})").fault() == "AWQ is supported with 4 bits only");
}

TEST_CASE("ternary weights of BitNet, four in a byte") {
  const std::string config = R"({"quant_method": "bitnet"})";
  CHECK(Weights(config)
            .add("a.weight", "U8", {2, 1}, Bytes{0x24, 0x81})
            .add("a.weight_scale", "F32", {1}, std::vector<float>{0.5})
            .values() == std::vector<float>{-2, 0, 0, -2, 2, -2, -2, 2});
  CHECK(Weights(config).add("a.weight", "F32", {2, 1}, std::vector<float>{1, 2}).values() == std::vector<float>{1, 2});
  CHECK(Weights(config).add("a.weight", "U8", {2, 1}, Bytes{0, 0}).fault() == "tensor 'a.weight_scale' is missing");
  CHECK(Weights(config).add("a.weight_scale", "F32", {1}, std::vector<float>{1}).fault() ==
        "tensor 'a.weight' is missing, but its scales, 'a.weight_scale', exist");
  CHECK(Weights(config)
            .add("a.weight", "U8", {2, 1}, Bytes{0, 0})
            .add("a.weight_scale", "F32", {2}, std::vector<float>{1, 2})
            .fault() == "tensor 'a.weight_scale': has 2 values, expected one");
  CHECK(Weights(config)
            .add("a.weight", "F32", {2, 1}, std::vector<float>{1, 2})
            .add("a.weight_scale", "F32", {1}, std::vector<float>{1})
            .fault() == "tensor 'a.weight': 2 x 1 of F32 is not a matrix of packed bytes");
}

TEST_CASE("GGML blocks keep their bytes, or are decoded") {
  const std::string config = R"({"quant_method": "modelopt", "quant_algo": "Q8_0", "packing": "ggml",
                                 "group_size": 32, "block_payload_bytes": 34})";
  Weights weights(config);
  weights.add("a.weight", "U8", {34, 2, 3}, Bytes(6 * 34, 1)).add("b.weight", "F32", {1}, std::vector<float>{1});
  const auto kept = weights.decoded();
  REQUIRE(kept);
  CHECK(kept.value().block_type == &type_named("Q8_0"));
  const Expression& blocks = *kept.value().tensors[0].values;
  CHECK(blocks.type->name == "Q8_0");
  CHECK(describe(blocks.shape) == "64 x 3");
  REQUIRE(blocks.as_extent());
  CHECK(blocks.as_extent()->bytes == 6 * 34);
  CHECK(kept.value().tensors[1].values->type->name == "F32");
  const auto decoded = weights.decoded(Blocks::kDecode);
  REQUIRE(decoded);
  CHECK(decoded.value().tensors[0].values->type->name == "F32");
  CHECK(describe(decoded.value().tensors[0].values->shape) == "64 x 3");
}

TEST_CASE("GGML blocks of some layers") {
  Weights weights(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
                      "quantized_layers": {"a": {"quant_algo": "IQ1_S"}, "b": {"quant_algo": "FP8"}}})");
  weights.add("a.weight", "U8", {50, 1, 2}, Bytes(100))
      .add("b.weight", "F8_E4M3", {1, 1}, Bytes{kTwo})
      .add("b.weight_scale", "F32", {1}, std::vector<float>{10})
      .add("c.weight", "F32", {1, 1}, std::vector<float>{3});
  const auto decoded = weights.decoded();
  REQUIRE(decoded);
  REQUIRE(decoded.value().tensors.size() == 3);
  CHECK(decoded.value().tensors[0].values->type->name == "IQ1_S");
  CHECK(expression_values(*decoded.value().tensors[1].values) == std::vector<float>{20});
}

TEST_CASE("GGML blocks that do not fit their type") {
  const auto fault = [](const std::string& more, const std::vector<std::uint64_t>& dims) {
    return Weights(R"({"quant_method": "modelopt", "packing": "ggml")" + more + "}")
        .add("a.weight", "U8", dims, Bytes(100))
        .fault();
  };
  CHECK(fault(R"(, "quant_algo": "IQ1_S")", {50, 2}) ==
        "tensor 'a.weight': 50 x 2 of U8 is not rows of IQ1_S blocks, which have 50 bytes");
  CHECK(fault(R"(, "quant_algo": "IQ2_XS")", {50, 1, 2}) ==
        "tensor 'a.weight': 50 x 1 x 2 of U8 is not rows of IQ2_XS blocks, which have 74 bytes");
  CHECK(fault(R"(, "quant_algo": "IQ9_Z")", {50, 1, 2}) == "'IQ9_Z' is not a type of GGML blocks");
  CHECK(fault("", {50, 1, 2}) == "'' is not a type of GGML blocks");
  CHECK(fault(R"(, "quant_algo": "IQ1_S", "group_size": 128)", {50, 1, 2}) ==
        "'group_size' in the quantization config is 128, but that of IQ1_S is 256");
  CHECK(fault(R"(, "quant_algo": "IQ1_S", "block_payload_bytes": 74)", {50, 1, 2}) ==
        "'block_payload_bytes' in the quantization config is 74, but that of IQ1_S is 50");
}

TEST_CASE("several groups of compressed-tensors have their own formats") {
  const std::string config = R"({"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": {
      "a": {"format": "float-quantized", "targets": ["Linear"], "weights": {}},
      "b": {"format": "pack-quantized", "targets": ["re:.*mlp"], "weights": {"num_bits": 4, "group_size": 8}},
      "c": {"format": "pack-quantized", "targets": ["x.mlp.up"], "weights": {"num_bits": 8, "group_size": 4}}}})";
  const std::vector<std::int64_t> one_word{1, 8}, one_byte_word{1, 4};
  Weights weights(config);
  weights.add("x.attn.weight", "F8_E4M3", {2, 1}, Bytes{kOne, kTwo})
      .add("x.attn.weight_scale", "F32", {1, 1}, std::vector<float>{10});
  CHECK(weights.values("x.attn.weight") == std::vector<float>{10, 20});
  Weights down(config);
  down.add("x.mlp.down.weight_packed", "I32", {1, 1}, packed({8, 9, 10, 11, 12, 13, 14, 15}))
      .add("x.mlp.down.weight_scale", "F32", {1, 1}, std::vector<float>{10})
      .add("x.mlp.down.weight_shape", "I64", {2}, one_word);
  CHECK(down.values("x.mlp.down.weight") == std::vector<float>{0, 10, 20, 30, 40, 50, 60, 70});
  Weights up(config);
  up.add("x.mlp.up.weight_packed", "I32", {1, 1}, std::vector<std::int32_t>{0x03020100})
      .add("x.mlp.up.weight_scale", "F32", {1, 1}, std::vector<float>{1})
      .add("x.mlp.up.weight_shape", "I64", {2}, one_byte_word);
  CHECK(up.values("x.mlp.up.weight") == std::vector<float>{-128, -127, -126, -125});
}

TEST_CASE("a weight that no group of compressed-tensors is for") {
  CHECK(Weights(R"({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {
            "a": {"targets": ["re:y"], "weights": {}}, "b": {"targets": ["re:z"], "weights": {}}}})")
            .add("x.weight", "F8_E4M3", {2, 1}, Bytes{kOne, kTwo})
            .add("x.weight_scale", "F32", {1, 1}, std::vector<float>{10})
            .fault() == "'x' is quantized, but no group in config_groups is for it");
}

TEST_CASE("int4 of compressed-tensors, with and without zero points") {
  const std::string config = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {"g": {"weights": {"num_bits": 4, "group_size": 4}}}})";
  // 2 rows of 6 columns, padded to whole words; groups of 4 columns.
  const std::vector<unsigned> integers = some(16, 1);
  const std::vector<float> scales{1, 10, 100, 1000};
  const std::vector<std::int64_t> shape{2, 6};
  std::vector<float> middle, with_zeros;
  std::vector<unsigned> zeros = some(16, 2);  // words along the rows: {groups, rows}, padded to 8 rows
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 0; column < 6; ++column) {
      const auto integer = static_cast<float>(integers[row * 8 + column]);
      const float scale = scales[row * 2 + column / 4];
      middle.push_back((integer - 8) * scale);
      with_zeros.push_back((integer - static_cast<float>(zeros[column / 4 * 8 + row])) * scale);
    }
  Weights plain(config);
  plain.add("a.weight_packed", "I32", {1, 2}, packed(integers))
      .add("a.weight_scale", "F32", {2, 2}, scales)
      .add("a.weight_shape", "I64", {2}, shape);
  CHECK(plain.values() == middle);
  // The file has one row of words per 8 rows: {2 groups, 1}.
  plain.add("a.weight_zero_point", "I32", {2, 1}, packed(zeros));
  CHECK(plain.values() == with_zeros);
  CHECK(Weights(config).add("a.weight_packed", "I32", {1, 2}, packed(integers)).fault() ==
        "tensor 'a.weight': tensor 'a.weight_scale' is missing");
  CHECK(Weights(config)
            .add("a.weight_packed", "I32", {1, 2}, packed(integers))
            .add("a.weight_scale", "F32", {2, 2}, scales)
            .add("a.weight_shape", "I64", {2}, std::vector<std::int64_t>{2, 9})
            .fault()
            .starts_with("tensor 'a.weight': "));
  CHECK(Weights(config)
            .add("a.weight_packed", "I32", {1, 2}, packed(integers))
            .add("a.weight_scale", "F32", {2, 2}, scales)
            .add("a.weight_shape", "I64", {2}, std::vector<std::int64_t>{-2, 6})
            .fault() == "tensor 'a.weight': the stored shape does not have two dimensions");
}

TEST_CASE("GPTQ: words along the rows of a transposed matrix, offsets minus one") {
  // 16 inputs in groups of 8, 8 outputs. Word (r, o) contains inputs 8r to 8r + 7 of output o.
  const std::vector<unsigned> integers = some(128, 3), zeros = some(16, 4);  // integers[(r * 8 + o) * 8 + i]
  std::vector<float> scales, expected;
  for (int i = 0; i < 16; ++i) scales.push_back(static_cast<float>(1 + i));  // {8 outputs, 2 groups}
  for (std::size_t out = 0; out < 8; ++out)
    for (std::size_t in = 0; in < 16; ++in) {
      const std::size_t group = in / 8;
      const auto offset = static_cast<float>(zeros[group * 8 + out]) + 1;
      expected.push_back((static_cast<float>(integers[(group * 8 + out) * 8 + in % 8]) - offset) *
                         scales[group * 8 + out]);
    }
  Words order;
  for (int i = 0; i < 16; ++i) order.push_back(i / 8);
  const auto weights = [&](const Words& groups) {
    auto made = std::make_unique<Weights>(R"({"quant_method": "gptq", "bits": 4, "group_size": 8})");
    made->add("a.qweight", "I32", {8, 2}, packed(integers))
        .add("a.qzeros", "I32", {1, 2}, packed(zeros))
        .add("a.scales", "F32", {8, 2}, scales)
        .add("a.g_idx", "I32", {groups.size()}, groups);
    return made;
  };
  CHECK(weights(order)->values() == expected);
  // With desc_act, a column may belong to any group.
  std::swap(order[0], order[15]);
  order[3] = 1;
  for (std::size_t out = 0; out < 8; ++out)
    for (std::size_t in = 0; in < 16; ++in) {
      const auto group = static_cast<std::size_t>(order[in]);
      const auto offset = static_cast<float>(zeros[group * 8 + out]) + 1;
      expected[out * 16 + in] =
          (static_cast<float>(integers[(in / 8 * 8 + out) * 8 + in % 8]) - offset) * scales[group * 8 + out];
    }
  CHECK(weights(order)->values() == expected);
  order[5] = 2;
  CHECK(weights(order)->fault() == "tensor 'a': column 5 is in group 2, but there are only 2");
  order[5] = -1;
  CHECK(weights(order)->fault() == "tensor 'a': column 5 is in group -1, but there are only 2");
  order.pop_back();
  CHECK(weights(order)->fault() == "tensor 'a': 16 columns, but groups of 15");
}

TEST_CASE("AWQ: words along the columns before transposing, in its own order") {
  // 4 inputs in groups of 2, 8 outputs: nibble i of an input's word belongs to output kOrder[i].
  constexpr std::size_t kOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};
  const std::vector<unsigned> integers = some(32, 5), zeros = some(16, 6);
  std::vector<float> scales, expected(32);
  for (int i = 0; i < 16; ++i) scales.push_back(static_cast<float>(1 + i));
  for (std::size_t in = 0; in < 4; ++in)
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t out = kOrder[i], group = in / 2;
      expected[out * 4 + in] = (static_cast<float>(integers[in * 8 + i]) - static_cast<float>(zeros[group * 8 + i])) *
                               scales[group * 8 + out];
    }
  CHECK(Weights(R"({"quant_method": "awq", "bits": 4, "group_size": 2})")
            .add("a.qweight", "I32", {1, 4}, packed(integers))
            .add("a.qzeros", "I32", {1, 2}, packed(zeros))
            .add("a.scales", "F32", {8, 2}, scales)
            .values() == expected);
}

TEST_CASE("NVFP4 is repacked under either producer's names and keeps the scale of the tensor") {
  const Bytes pairs(64, 0x21), scales(8, kOne);  // 2 rows of 64 columns, blocks of 16
  const auto check = [&](const std::string& config, const std::string& weight, const std::string& scale, float stored,
                         float expected) {
    const auto result = Weights(config)
                            .add(weight, "U8", {32, 2}, pairs)
                            .add("a.weight_scale", "F8_E4M3", {4, 2}, scales)
                            .add(scale, "F32", {1}, std::vector<float>{stored})
                            .decoded();
    CAPTURE(result ? "" : render(result.error()));
    REQUIRE(result);
    REQUIRE(result.value().tensors.size() == 1);
    const NamedTensor& tensor = result.value().tensors[0];
    CHECK(result.value().is_nvfp4);
    CHECK(tensor.name == "a.weight");
    CHECK(tensor.values->type->name == "NVFP4");
    CHECK(describe(tensor.values->shape) == "64 x 2");
    REQUIRE(tensor.beside.size() == 2);
    CHECK(tensor.beside[0].first == ".scale");
    CHECK(tensor.beside[0].second->values == std::vector<float>{expected});
    CHECK(tensor.beside[1].second->values == std::vector<float>{1});
  };
  check(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", "a.weight", "a.weight_scale_2", 0.5f, 0.5f);
  check(R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})", "a.weight_packed",
        "a.weight_global_scale", 4, 0.25f);
}
