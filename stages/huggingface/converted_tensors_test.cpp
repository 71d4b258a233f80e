// Tests of tensors that are merged after the map's rules.
#include "stages/huggingface/converted_tensors.h"

#include "tests/support/catch.h"
#include "tests/support/expression_values.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

MappedTensor tensor(std::string name, std::uint64_t rows, float value, bool is_whole = true) {
  const bool is_bias = name.ends_with("bias");
  const Shape shape = is_bias ? Shape{1, {rows, 1, 1, 1}} : Shape{2, {1, rows, 1, 1}};
  MappedTensor made{std::move(name), expressions::constant(shape, std::vector<float>(rows, value)).value()};
  made.is_whole = is_whole;
  return made;
}

std::vector<std::string> names_after(std::vector<MappedTensor> tensors) {
  REQUIRE(fuse_qkv(tensors, 8));
  std::vector<std::string> names;
  for (const MappedTensor& each : tensors) names.push_back(each.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("queries, keys, and values are joined in this order at the position of the last") {
  std::vector<MappedTensor> tensors{tensor("blk.0.attn_k.weight", 1, 2), tensor("blk.0.attn_norm.weight", 1, 9),
                                    tensor("blk.0.attn_v.weight", 1, 3), tensor("blk.0.attn_q.weight", 2, 1),
                                    tensor("output.weight", 1, 8)};
  REQUIRE(fuse_qkv(tensors, 8));
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[1].name == "blk.0.attn_qkv.weight");
  CHECK(tensors[2].name == "output.weight");
  CHECK(expression_values(*tensors[1].values) == std::vector<float>{1, 1, 2, 3});
}

TEST_CASE("biases are joined if there are three, and layers with fewer stay as they are") {
  const auto layer = [](std::initializer_list<const char*> biases) {
    std::vector<MappedTensor> tensors;
    for (const char* part : {"q", "k", "v"})
      tensors.push_back(tensor(std::string("blk.7.attn_") + part + ".weight", 1, 1));
    for (const char* part : biases) tensors.push_back(tensor(std::string("blk.7.attn_") + part + ".bias", 1, 1));
    return tensors;
  };
  CHECK(names_after(layer({"q", "k", "v"})) == Names{"blk.7.attn_qkv.weight", "blk.7.attn_qkv.bias"});
  CHECK(names_after(layer({"q"})) ==
        Names{"blk.7.attn_q.weight", "blk.7.attn_k.weight", "blk.7.attn_v.weight", "blk.7.attn_q.bias"});
}

TEST_CASE("layers without all three, and parts of a tensor, stay as they are") {
  CHECK(names_after({tensor("blk.0.attn_q.weight", 1, 1), tensor("blk.0.attn_k.weight", 1, 1)}).size() == 2);
  CHECK(names_after({tensor("blk.0.attn_q.weight", 1, 1, false), tensor("blk.0.attn_k.weight", 1, 1, false),
                     tensor("blk.0.attn_v.weight", 1, 1, false)})
            .size() == 3);
  CHECK(names_after({tensor("blk.0.attn_q.weight", 1, 1), tensor("blk.1.attn_k.weight", 1, 1),
                     tensor("blk.0.attn_v.weight", 1, 1)})
            .size() == 3);
}

TEST_CASE("layers behind the last that can be fused stay as they are") {
  std::vector<MappedTensor> tensors;
  for (const char* part : {"q", "k", "v"})
    for (const char* layer : {"7", "8"})
      tensors.push_back(tensor(std::string("blk.") + layer + ".attn_" + part + ".weight", 1, 1));
  CHECK(names_after(std::move(tensors)) ==
        Names{"blk.8.attn_q.weight", "blk.8.attn_k.weight", "blk.7.attn_qkv.weight", "blk.8.attn_v.weight"});
}

TEST_CASE("tensors without elements are refused, with the likely cause if there are several") {
  const TypeInfo& bf16 = type_named("BF16");
  const auto tensor = [&](std::string name, const Shape& shape) {
    const std::uint64_t bytes = bytes_of(bf16, shape).value();
    return NamedTensor{std::move(name), expressions::extent(bf16, shape, {nullptr, 0, bytes}).value()};
  };
  const NamedTensor full = tensor("a", {2, {64, 2, 1, 1}}), row = tensor("b", {1, {0, 1, 1, 1}}),
                    columns = tensor("c", {2, {0, 64, 1, 1}});
  CHECK(check_not_empty({full}, "folder"));
  const Error one = check_not_empty({full, columns}, "folder").error();
  CHECK(one.code == ExitCode::kBadInput);
  CHECK(one.what == "tensor 'c' is empty: its shape is 0 x 64");
  const Error two = check_not_empty({full, row, columns}, "folder").error();
  CHECK(two.what == "2 of 3 tensors are empty");
  CHECK(two.detail == "tensor 'b' is empty: its shape is 0");
  CHECK(two.help.find("ZeRO-3") != std::string::npos);
}
