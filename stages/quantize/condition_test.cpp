#include "stages/quantize/condition.h"

#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// A tensor, its model, and the type decided so far.
struct Bench {
  ModelFacts model;
  ModelGroups groups;
  Tensor tensor = bare_tensor("blk.3.ffn_down.weight", {512, 64});
  TensorFacts facts;
  const TypeInfo* type = &type_named("Q4_K");

  Bench() {
    model.architecture = "llama";
    model.layers = 32;
    model.experts = 8;
    model.heads = 32;
    model.kv_heads = 8;
    model.embedding = 4096;
    model.vocabulary = 128256;
    facts.tensor_class = TensorClass::kFfnDown;
  }
  Condition condition(const std::string& yaml) const {
    return parse_document(yaml, "a.yaml", map_of<Condition>(condition_fields({}))).value();
  }
  bool operator()(const std::string& yaml) {
    facts.tensor = &tensor;
    return holds(condition(yaml), facts, {model, groups, type}).value();
  }
};

// Draws which of the `count` places a span includes: 'x' or '.' for each.
std::string picture(Span span, std::uint64_t count) {
  std::string text;
  for (std::uint64_t place = 0; place < count; ++place) text += within(span, place, count) ? 'x' : '.';
  return text;
}

}  // namespace

TEST_CASE("spans contain their parts of the positions") {
  CHECK(picture(Span::kFirstSixteenth, 32) == "xx..............................");
  CHECK(picture(Span::kFirstEighth, 32) == "xxxx............................");
  CHECK(picture(Span::kInner, 32) == "....xxxxxxxxxxxxxxxxxxxxxxxx....");
  CHECK(picture(Span::kSpread, 32) == "xxxx..x..x..x..x..x..x..x..xxxxx");
}

TEST_CASE("spans round down if the positions do not divide evenly") {
  CHECK(picture(Span::kFirstSixteenth, 15) == "...............");
  CHECK(picture(Span::kFirstEighth, 9) == "x........");
  CHECK(picture(Span::kInner, 9) == ".xxxxxx..");
  CHECK(picture(Span::kSpread, 9) == "x..x..xxx");
  CHECK(picture(Span::kFirstEighth, 7) == ".......");
  CHECK(picture(Span::kSpread, 7) == "..x..xx");
}

TEST_CASE("an empty condition holds") { CHECK(Bench()("{}")); }

TEST_CASE("a name matches anywhere") {
  Bench bench;
  CHECK(bench("{match: 'ffn_d'}"));
  CHECK(bench("{match: '^blk\\.3\\.'}"));
  CHECK_FALSE(bench("{match: '^ffn'}"));
}

TEST_CASE("matching one class of a list is enough") {
  Bench bench;
  CHECK(bench("{class: ffn_down}"));
  CHECK(bench("{class: [attn_k, ffn_down]}"));
  CHECK_FALSE(bench("{class: [attn_k, attn_q]}"));
}

TEST_CASE("architectures can be required and excluded") {
  Bench bench;
  CHECK(bench("{arch: [falcon, llama]}"));
  CHECK_FALSE(bench("{arch: falcon}"));
  CHECK(bench("{not_arch: falcon}"));
  CHECK_FALSE(bench("{not_arch: [falcon, llama]}"));
}

TEST_CASE("numbers of the model are compared") {
  Bench bench;
  CHECK(bench("{experts: 8, experts_at_least: 8, layers: 32, head_groups_at_least: 4, grouped_heads: true}"));
  CHECK_FALSE(bench("{experts: 4}"));
  CHECK_FALSE(bench("{experts_at_least: 9}"));
  CHECK_FALSE(bench("{layers: 31}"));
  CHECK_FALSE(bench("{head_groups_at_least: 5}"));
  CHECK_FALSE(bench("{grouped_heads: false}"));
  CHECK(bench("{embedding_at_least: 4096, vocabulary_at_least: 128256}"));
  CHECK_FALSE(bench("{embedding_at_least: 4097}"));
  CHECK_FALSE(bench("{vocabulary_at_least: 128257}"));
}

TEST_CASE("the row length is divided by a number, whatever the type") {
  Bench bench;
  CHECK(bench("{multiple_of: 256}"));
  CHECK_FALSE(bench("{multiple_of: 1024}"));
  bench.type = nullptr;
  CHECK(bench("{multiple_of: 512}"));
}

TEST_CASE("importance can be required or excluded") {
  Bench bench;
  CHECK(bench("{importance: false}"));
  bench.model.importance = true;
  CHECK(bench("{importance: true}"));
  CHECK_FALSE(bench("{importance: false}"));
}

TEST_CASE("conditions see the type chosen so far") {
  Bench bench;
  CHECK(bench("{from: [Q3_K, Q4_K]}"));
  CHECK_FALSE(bench("{from: Q3_K}"));
  bench.type = nullptr;
  CHECK_FALSE(bench("{from: Q4_K}"));
}

TEST_CASE("conditions see whether rows divide into blocks of the type chosen so far") {
  Bench bench;
  CHECK(bench("{divisible: true}"));
  set_source(bench.tensor, {2, {320, 64, 1, 1}}, "F32");
  CHECK(bench("{divisible: false}"));
  bench.type = &type_named("Q8_0");
  CHECK(bench("{divisible: true}"));
}

TEST_CASE("trailing dimensions of 1 do not count") {
  Bench bench;
  CHECK(bench("{rank_below: 3}"));
  CHECK_FALSE(bench("{rank_below: 2}"));
  set_source(bench.tensor, {2, {512, 1, 1, 1}}, "F32");
  CHECK(bench("{rank_below: 2}"));
}

TEST_CASE("matrices are counted by the third dimension") {
  Bench bench;
  CHECK_FALSE(bench("{matrices_at_least: 2}"));
  set_source(bench.tensor, {3, {512, 64, 8, 1}}, "F32");
  CHECK(bench("{matrices_at_least: 2}"));
}

TEST_CASE("order is the position within the kind, depth the position among the layers") {
  Bench bench;
  bench.facts.order = 1;
  bench.facts.kind_count = 16;
  bench.facts.depth = 5;
  CHECK(bench("{order: first_eighth, order_below: 2}"));
  CHECK_FALSE(bench("{order_below: 1}"));
  CHECK_FALSE(bench("{depth: first_eighth}"));
  CHECK(bench("{depth: inner}"));
}

TEST_CASE("a model is in a group when one of its conditions holds") {
  Bench bench;
  bench.groups["mine"] = {bench.condition("{arch: falcon}"), bench.condition("{layers: 32}")};
  bench.groups["others"] = {bench.condition("{arch: falcon}")};
  CHECK(bench("{model: mine}"));
  CHECK_FALSE(bench("{model: others}"));
  CHECK(bench("{model: [others, mine]}"));
}

TEST_CASE("all parts of a condition must hold") { CHECK_FALSE(Bench()("{class: ffn_down, layers: 31}")); }
