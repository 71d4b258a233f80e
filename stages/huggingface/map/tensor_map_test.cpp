// Tests of mapping tensors: names, order, parts and missing tensors.
#include "stages/huggingface/map/tensor_map.h"

#include <boost/json/parse.hpp>

#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

ExpressionRef numbers(std::vector<float> values) {
  Shape shape{2, {2, values.size() / 2, 1, 1}};
  return expressions::constant(shape, std::move(values)).value();
}

// A map, a config.json, and names of tensors of shape {2, 1}; tensor i contains 2i and 2i + 1.
class Case {
 public:
  Case(const std::string& yaml, const std::string& config, const std::vector<std::string>& names) {
    write_text(folder_.file("a.yaml"), "name: m\nlayers: layers\n" + yaml);
    auto architecture = read_architecture(folder_.file("a.yaml"));
    CAPTURE(architecture ? "" : render(architecture.error()));
    REQUIRE(architecture);
    architecture_ = std::move(architecture).value();
    architecture_.file = "a.yaml";
    facts_.emplace("folder", boost::json::parse(config).as_object(), architecture_.values);
    for (const std::string& name : names)
      add(name, numbers({2.0f * static_cast<float>(tensors_.size()), 2.0f * static_cast<float>(tensors_.size()) + 1}));
  }
  void add(const std::string& name, ExpressionRef values) { tensors_.push_back({name, std::move(values)}); }
  // Adds a tensor with one extra number.
  void add(const std::string& name, ExpressionRef values, const std::string& ending, float number) {
    add(name, std::move(values));
    tensors_.back().beside = {{ending, expressions::constant(Shape{1, {1, 1, 1, 1}}, {number}).value()}};
  }

  Result<std::vector<MappedTensor>> map() const {
    BOOST_OUTCOME_TRY(auto renamed, rename_tensors(architecture_, *facts_, tensors_));
    return map_tensors(architecture_, *facts_, renamed, "folder");
  }
  // Returns "NAME[dims]=values" for each tensor.
  std::string tensors() const {
    const auto mapped = map();
    if (!mapped) return render(mapped.error());
    std::string text;
    for (const MappedTensor& tensor : mapped.value()) {
      text += tensor.name + "[" + describe(tensor.values->shape) + "]=";
      for (const float value : expression_values(*tensor.values)) text += std::to_string(static_cast<int>(value)) + ",";
      text.back() = '\n';
    }
    return text;
  }

 private:
  TempDir folder_;
  Architecture architecture_;
  std::optional<Facts> facts_;
  std::vector<NamedTensor> tensors_;
};

std::string mapped(const std::string& yaml, const std::string& config, const std::vector<std::string>& names) {
  return Case(yaml, config, names).tensors();
}

}  // namespace

TEST_CASE("operations move whole rows of blocks, and decode them otherwise") {
  const auto file = std::make_shared<SourceFile>(SourceFile{"f", 4 * 34});
  const auto blocks = expressions::extent(type_named("Q8_0"), Shape{2, {32, 4, 1, 1}}, {file, 0, 4 * 34}).value();
  const auto type_after = [&](const std::string& steps) {
    Case test("tensors: [{from: a.weight, to: b.weight, do: [" + steps + "]}]", R"({"layers": 1})", {});
    test.add("a.weight", blocks);
    const auto mapped = test.map();
    CAPTURE(mapped ? "" : render(mapped.error()));
    REQUIRE(mapped);
    return std::string(mapped.value()[0].values->type->name);
  };
  CHECK(type_after("{pair_halves: 2}") == "Q8_0");
  CHECK(type_after("{slice: [1, 1, 2]}") == "Q8_0");
  CHECK(type_after("{repeat_rows: 2}") == "Q8_0");
  CHECK(type_after("transpose") == "F32");
  CHECK(type_after("{add: 1}") == "F32");
}

TEST_CASE("names with numbers") {
  const NameTemplate name = NameTemplate::parse("a.{layer}.b.{expert}.c").value();
  CHECK(name.with({3, 12}) == "a.3.b.12.c");
  CHECK(!name.with({3, {}}));
  CHECK(name.match("a.3.b.12.c") == NameNumbers{3, 12});
  for (const char* other : {"a.3.b.12.cd", "a.03.b.12.c", "a.1234567.b.1.c", "a.-1.b.1.c", "a..b.1.c", "x", ""})
    CHECK(!name.match(other));
  const NamePattern open = NamePattern::parse("a.{layer}").value(), closed = NamePattern::parse("a.weight").value();
  CHECK(open.match("a.0.bias")->suffix == ".bias");
  CHECK(open.match("a.0")->suffix.empty());
  CHECK(!open.match("a.0.scale"));
  CHECK(closed.match("a.weight")->suffix.empty());
  CHECK(!closed.match("a.weight.weight"));
}

TEST_CASE("tensors are renamed in their order, early ones first and computed ones before them") {
  CHECK(mapped("tensors:\n"
               "  - {from: 'l.{layer}.q', to: 'blk.{layer}.attn_q'}\n"
               "  - {from: e, to: token_embd, early: true}\n"
               "  - {from: x, drop: true}\n"
               "computed: [{to: c, function: numbers, of: [list]}]\n",
               R"({"layers": 2, "list": [7, 8]})", {"l.0.q.weight", "x.weight", "l.1.q.bias", "e.weight"}) ==
        "c[2]=7,8\n"
        "token_embd.weight[2 x 1]=6,7\n"
        "blk.0.attn_q.weight[2 x 1]=0,1\n"
        "blk.1.attn_q.bias[2 x 1]=4,5\n");
}

TEST_CASE("tensors of rules by layer come in the order of rules and layers, before other early ones") {
  CHECK(mapped("tensors:\n"
               "  - {from: e, to: token_embd, early: true}\n"
               "  - {from: 't.{layer}', to: 'blk.{layer}.t', early: true, by_layer: true}\n"
               "  - together: [{to: 'blk.{layer}.q', concat: ['q.{layer}', 'r.{layer}']}]\n"
               "    early: true\n"
               "    by_layer: true\n",
               R"({"layers": 2})",
               {"e.weight", "q.1.weight", "r.0.weight", "q.0.weight", "r.1.weight", "t.1.weight", "t.0.weight"}) ==
        "blk.0.t.weight[2 x 1]=12,13\n"
        "blk.1.t.weight[2 x 1]=10,11\n"
        "blk.0.q.weight[2 x 2]=6,7,4,5\n"
        "blk.1.q.weight[2 x 2]=2,3,8,9\n"
        "token_embd.weight[2 x 1]=0,1\n");
}

TEST_CASE("one tensor becomes several, and parts are joined") {
  CHECK(mapped("tensors:\n"
               "  - from: a\n"
               "    outputs:\n"
               "      - {to: x, do: [{part: [0, 0, 2]}]}\n"
               "      - {to: y, do: [{part: [0, 1, 2]}]}\n"
               "      - {to: z, when: {present: nothing}}\n"
               "  - {from: b, to: b, do: [{join: [[{slice: [0, 1]}], [{slice: [0, 0, 1]}]]}, {reshape: [[2]]}]}\n",
               R"({"layers": 0})",
               {"a.weight", "b.weight"}) == "x.weight[1 x 1]=0\ny.weight[1 x 1]=1\nb.weight[2]=3,2\n");
}

TEST_CASE("experts are stacked once their last part is read, each suffix separately") {
  const std::string yaml =
      "tensors:\n"
      "  - together:\n"
      "      - {to: 'blk.{layer}.down', stack: 'l.{layer}.e.{expert}.d', count: experts}\n"
      "      - {to: 'blk.{layer}.up', stack: 'l.{layer}.e.{expert}.u', count: experts}\n"
      "  - {from: n, to: n}\n";
  CHECK(mapped(yaml, R"({"layers": 1, "experts": 2})",
               {"l.0.e.0.d.weight", "l.0.e.0.u.weight", "n", "l.0.e.1.d.weight", "l.0.e.1.u.weight"}) ==
        "n[2 x 1]=4,5\n"
        "blk.0.down.weight[2 x 1 x 2]=0,1,6,7\n"
        "blk.0.up.weight[2 x 1 x 2]=2,3,8,9\n");
  CHECK(mapped(yaml, R"({"layers": 1, "experts": 1})",
               {"l.0.e.0.d.bias", "l.0.e.0.d.weight", "l.0.e.0.u.bias", "l.0.e.0.u.weight"}) ==
        "blk.0.down.bias[2 x 1 x 1]=0,1\n"
        "blk.0.up.bias[2 x 1 x 1]=4,5\n"
        "blk.0.down.weight[2 x 1 x 1]=2,3\n"
        "blk.0.up.weight[2 x 1 x 1]=6,7\n");
  CHECK(mapped(yaml, R"({"layers": 1, "experts": 2})", {"l.0.e.0.d.weight", "l.0.e.1.d.weight", "l.0.e.1.u.weight"}) ==
        "folder: error: 'l.0.e.0.u.weight' is missing\n"
        "  help: only 3 of the 4 tensors written together in layer 0 exist\n");
  const std::string beyond =
      mapped(yaml, R"({"layers": 1, "experts": 1})", {"l.0.e.0.d.weight", "l.0.e.0.u.weight", "l.0.e.1.d.weight"});
  CAPTURE(beyond);
  CHECK(beyond.find("tensor 'l.0.e.1.d.weight': no rule in architecture 'a.yaml' matches it (F32 of 2 x 1)\n") !=
        std::string::npos);
  CHECK(beyond.find("'l.{layer}.e.{expert}.d' would match, but a layer has 1 expert\n") != std::string::npos);
  const std::string many = mapped(yaml, R"({"layers": 1, "experts": 1000000000})", {"l.0.e.0.d.weight"});
  CHECK(
      many.starts_with("folder/config.json: error: tensor 'l.0.e.0.d.weight': the number of experts is 1000000000, but "
                       "the checkpoint has only 1 tensor\n"));
  CHECK(mapped(yaml, R"({"layers": 1, "experts": 0})", {"l.0.e.0.d.weight"})
            .find("would match, but a layer has 0 experts") != std::string::npos);
}

TEST_CASE("layers may have different numbers of experts") {
  const std::string yaml = "tensors: [{together: [{to: 'b.{layer}', stack: 'l.{layer}.{expert}', count: experts}]}]";
  CHECK(mapped(yaml, R"({"layers": 3, "experts": [1, 0, 2]})", {"l.0.0", "l.2.0", "l.2.1"}) ==
        "b.0[2 x 1 x 1]=0,1\nb.2[2 x 1 x 2]=2,3,4,5\n");
  CHECK(mapped(yaml, R"({"layers": 3, "experts": [1, 0]})", {"l.1.0"}).find("would match, but a layer has 0 experts") !=
        std::string::npos);
  CHECK(mapped(yaml, R"({"layers": 3, "experts": [1, -1]})", {"l.0.0"})
            .starts_with("folder/config.json: error: the number of experts is '-1', not a non-negative integer\n"));
}

TEST_CASE("tensors beyond the number of experts, and one of another shape in a stack, are named") {
  const std::string yaml = "tensors: [{together: [{to: 'b.{layer}', stack: 'l.{layer}.{expert}', count: experts}]}]";
  CHECK(mapped(yaml, R"({"layers": 2, "experts": 1})", {"l.0.0", "l.0.1", "l.1.0", "l.1.1"})
            .starts_with("folder: error: config.json says 1 expert, but the weights have 2 experts: 2 of 4 tensors are "
                         "beyond, such as 'l.0.1', 'l.1.1'\n"));
}

TEST_CASE("the parts of a stack are changed before they are stacked") {
  CHECK(mapped("tensors: [{together: [{to: b, stack: 'e.{expert}', count: 2, each: [{pad_rows: 2}]}]}]",
               R"({"layers": 0})", {"e.0", "e.1"}) == "b[2 x 2 x 2]=0,1,0,0,2,3,0,0\n");
}

TEST_CASE("a missing value in a list of arguments is reported by name") {
  CHECK(mapped("tensors: [{from: a, to: b, do: [{reshape: [2, x]}]}]", R"({"layers": 0})", {"a"})
            .starts_with("folder/config.json: error: tensor 'a': 'x' is missing\n"));
}

TEST_CASE("numbered tensors are joined") {
  CHECK(mapped("tensors: [{together: [{to: b, concat: ['a.{expert}', c], count: 2, each: [flatten]}]}]",
               R"({"layers": 0})", {"a.0", "a.1", "c"}) == "b[6]=0,1,2,3,4,5\n");
}

TEST_CASE("the scalars that belong to the parts of a stack become one tensor") {
  Case stack("tensors: [{together: [{to: d, stack: 'e.{expert}', count: experts}]}]", R"({"layers": 0, "experts": 3})",
             {});
  for (const int expert : {0, 1, 2})
    stack.add("e." + std::to_string(expert) + ".weight", numbers({1, 2}), ".scale", 4.0f + static_cast<float>(expert));
  CHECK(stack.tensors() == "d.weight[2 x 1 x 3]=1,2,1,2,1,2\nd.scale[3]=4,5,6\n");
}

TEST_CASE("tensors are joined along their last dimension") {
  CHECK(mapped("tensors: [{together: [{to: c, concat: [b, a]}]}]", R"({"layers": 0})", {"a.weight", "b.weight"}) ==
        "c.weight[2 x 2]=2,3,0,1\n");
}

TEST_CASE("a tensor that a map requires may be taken by an earlier rule") {
  CHECK(mapped("tensors: [{from: e, to: first}, {from: e, to: second, required: true}]", R"({"layers": 0})", {"e"})
            .find("error") == std::string::npos);
}

TEST_CASE("a tensor is required in the layers that a list names, and in no others") {
  const std::string map = "tensors: [{from: 'l.{layer}', to: 'l.{layer}', required_in: has}]";
  const auto fault = [&](const std::string& has, const std::vector<std::string>& names) {
    const std::string text = mapped(map, R"({"layers": 3, "has": )" + has + "}", names);
    return text.find("error") == std::string::npos
               ? ""
               : text.substr(text.find("tensor "), text.find('\n') - text.find("tensor "));
  };
  CHECK(fault("[true, false, true]", {"l.0", "l.2"}).empty());
  CHECK(fault("[true, false, true]", {"l.0"}) == "tensor 'l.2' is missing");
  CHECK(fault("[true, false]", {"l.0", "l.1"}) == "tensor 'l.1' exists, but config.json says that its layer has none");
  CHECK(fault("[true, false]", {"l.0", "l.2"}) == "tensor 'l.2' exists, but config.json says that its layer has none");
  CHECK(fault("null", {"l.1"}).empty());
  CHECK(mapped(map, R"({"layers": 1, "has": 3})", {})
            .starts_with("folder/config.json: error: '3' is not a list of flags"));
}

TEST_CASE("DeepSeek V4 must have the table of experts in the layers that use it") {
  const Architecture map = read_architecture("deepseek4").value();
  const auto config =
      boost::json::parse(R"({"num_hidden_layers": 3, "num_hash_layers": 2, "n_routed_experts": 1, "hidden_size": 2})");
  const auto fault = [&](bool draft, std::uint32_t tables) {
    Facts facts("folder", config.as_object(), map.values);
    facts.set("option", boost::json::object{{"draft_head_only", draft}});
    const auto file = std::make_shared<SourceFile>(SourceFile{"f", 16});
    const auto table = expressions::extent(type_named("I64"), Shape{2, {2, 1, 1, 1}}, {file, 0, 16}).value();
    std::vector<NamedTensor> tensors;
    for (std::uint32_t i = 0; i < tables; ++i)
      tensors.push_back({"layers." + std::to_string(i) + ".ffn.gate.tid2eid", table});
    const auto mapped = map_tensors(map, facts, tensors, "folder");
    return mapped ? "" : render(mapped.error());
  };
  CHECK(fault(false, 0).find("tensor 'layers.0.ffn.gate.tid2eid' is missing") != std::string::npos);
  CHECK(fault(false, 1).find("tensor 'layers.1.ffn.gate.tid2eid' is missing") != std::string::npos);
  CHECK(fault(false, 2) == "");
  CHECK(fault(true, 0) == "");
}

TEST_CASE("all mismatches with the map are reported together") {
  const std::string layer = "tensors: [{from: 'l.{layer}.q', to: 'q.{layer}'}]";
  const std::string unknown = mapped(layer, R"({"layers": 1})", {"l.1.q.weight", "y"});
  CHECK(unknown.find("tensor 'l.1.q.weight': no rule in architecture 'a.yaml' matches it (F32 of 2 x 1)\n"
                     "  'l.{layer}.q' would match, but the number of layers is 1\n"
                     "  help: add a rule for it to `tensors:` in ") != std::string::npos);
  CHECK(Case(layer, R"({"layers": 1})", {"l.1.q.weight", "y"}).map().error().also.size() == 1);
  CHECK(mapped("tensors: [{from: [a, b], to: c}]", R"({"layers": 0})", {"a", "b"}) ==
        "folder: error: tensor 'b': two tensors become 'c'\n");
  CHECK(mapped("tensors: [{from: e, to: e, required: true}]", R"({"layers": 0})", {})
            .find("error: tensor 'e' is missing\n") != std::string::npos);
  CHECK(mapped("tensors: [{from: 'l.{layer}', to: 'l.{layer}', required: true}]", R"({"layers": 1000000000})",
               {"l.0", "l.2"})
            .find("error: tensor 'l.1' is missing\n") != std::string::npos);
  CHECK(mapped(layer, "{}", {}).starts_with("folder/config.json: error: the number of layers is missing: 'layers'\n"));
  CHECK(mapped("tensors: [{from: a, to: a, do: [{pair_halves: n}]}]", R"({"layers": 0, "n": 4})", {"a"})
            .starts_with("folder: error: tensor 'a': 1 rows cannot be split into 4 heads with an even number of rows\n"
                         "  pair_halves of 2 x 1, at "));
  CHECK(mapped("tensors: [{from: a, to: a, do: [{pair_halves: n}]}]", R"({"layers": 0})", {"a"})
            .starts_with("folder/config.json: error: tensor 'a': 'n' is missing\n"));
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back("x" + std::to_string(i));
  const Error one = Case(layer, R"({"layers": 1})", many).map().error();
  CHECK(one.also.empty());
  CHECK(one.what == "no rule in architecture 'a.yaml' matches 1000 of 1000 tensors: 'x0', 'x1', 'x2', ...");
}

TEST_CASE("names change before the rules apply") {
  const std::string rules = "tensors: [{from: 'l.{layer}', to: 'l.{layer}'}]\n";
  CHECK(mapped("names: [{match: '^model\\.', with: ''}, {drop: 'vision'}]\n" + rules, R"({"layers": 2})",
               {"model.l.0", "vision.l.0", "l.1"}) == "l.0[2 x 1]=0,1\nl.1[2 x 1]=4,5\n");
  CHECK(mapped("names: [{drop: '^l\\.(\\d+)', from_layer: keep}]\n" + rules, R"({"layers": 4, "keep": 1})",
               {"l.0", "l.1", "l.2"}) == "l.0[2 x 1]=0,1\n");
  CHECK(mapped("names: [{drop: '^l\\.(\\d+)', before_layer: keep}]\n" + rules, R"({"layers": 4, "keep": 1})",
               {"l.0", "l.1"}) == "l.1[2 x 1]=2,3\n");
  CHECK(mapped("names: [{match: '^mtp\\.(\\d+)', with: 'l.{layer}', plus: last}]\n" + rules,
               R"({"layers": 9, "last": 4})", {"mtp.1"}) == "l.5[2 x 1]=0,1\n");
  CHECK(mapped("names: [{match: a, with: b}]\n" + rules, R"({"layers": 1})", {"a", "b"})
            .starts_with("folder: error: two tensors are named 'b', one of them 'b' in the file\n"));
  CHECK(mapped("names: [{drop: a, when: off}]\ntensors: [{from: a, to: a}]\n", R"({"layers": 0, "off": false})",
               {"a"}) == "a[2 x 1]=0,1\n");
}

TEST_CASE("a tensor dropped because it is zero is checked") {
  const TempDir folder;
  const auto tensor = [&](const char* type, std::string_view bytes, std::uint64_t elements) {
    write_text(folder.file("w"), bytes);
    const auto source = std::make_shared<SourceFile>(SourceFile{folder.file("w"), bytes.size()});
    return expressions::extent(type_named(type), Shape{1, {elements, 1, 1, 1}}, {source, 0, bytes.size()}).value();
  };
  const auto result = [&](ExpressionRef values) {
    Case test("tensors: [{from: a.bias, drop: true, zero: true}]", R"({"layers": 0})", {});
    test.add("a.bias", std::move(values));
    return test.tensors();
  };
  CHECK(result(tensor("BF16", std::string_view("\0\0\0\x80", 4), 2)).empty());  // 0 and -0
  CHECK(
      result(tensor("BF16", std::string_view("\0\0\0\x3f", 4), 2))
          .starts_with(
              "folder: error: tensor 'a.bias': value 1 is not 0, and llama.cpp does not support this tensor in 'm'\n"));
  CHECK(result(tensor("I8", std::string_view("\x80", 1), 1)).find("value 0 is not 0") != std::string::npos);
}

TEST_CASE("of tensors with the same contents the first in the checkpoint is used") {
  const std::string map = "tensors: [{from: [shared, a.embed, b.embed], to: e, only_first: true}]\n";
  CHECK(mapped(map, R"({"layers": 1})", {"shared.weight", "b.embed.weight", "a.embed.weight"}) ==
        "e.weight[2 x 1]=0,1\n");
  CHECK(mapped(map, R"({"layers": 1})", {"b.embed.weight", "a.embed.weight"}) == "e.weight[2 x 1]=0,1\n");
  const std::string layers =
      "tensors: [{from: ['l.{layer}.x', 'l.{layer}.y'], to: 'blk.{layer}.z', only_first: true}]\n";
  CHECK(mapped(layers, R"({"layers": 2})", {"l.0.x", "l.1.y", "l.0.y"}) == "blk.0.z[2 x 1]=0,1\nblk.1.z[2 x 1]=2,3\n");
}

TEST_CASE("a tensor is whole if nothing else is made from the checkpoint's") {
  const auto whole = [](const std::string& rule) {
    const auto mapped = Case("tensors: [" + rule + "]\n", R"({"layers": 1})", {"a.weight"}).map();
    REQUIRE(mapped);
    return mapped.value()[0].is_whole;
  };
  CHECK(whole("{from: a, to: b, do: [{add: 1}]}"));
  CHECK(!whole("{from: a, outputs: [{to: b}, {to: c}]}"));
  CHECK(!whole("{together: [{to: b, concat: [a]}]}"));
}
