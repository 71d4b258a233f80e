#include "stages/quantize/objective.h"
#include "pipeline/io/platform/filesystem.h"

#include <fmt/format.h>

#include <regex>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ggufmill;

namespace {

MeasuredTensor tensor(const std::string& name, Shape shape, double energy) {
  return {name, "", shape, energy, energy, true, {}};
}

Result<std::vector<double>> by_stream(const Measurement& all, const StreamFacts& facts = {}) {
  std::vector<const MeasuredTensor*> tensors;
  for (const MeasuredTensor& each : all.tensors) tensors.push_back(&each);
  BOOST_OUTCOME_TRY(Sensitivities found, sensitivities(find_objective("stream", {}).value(), tensors, all, {}, facts));
  return std::move(found.counts);
}

// An embedding with rows of energy 1, and an attention output that writes energy 3.
Measurement attention() {
  Measurement all;
  all.tensors.push_back(tensor("token_embd.weight", {2, {256, 10, 1, 1}}, 10));
  all.tensors.push_back(tensor("output.weight", {2, {256, 10, 1, 1}}, 10));
  all.tensors.push_back(tensor("blk.0.attn_output.weight", {2, {256, 256, 1, 1}}, 3));
  return all;
}

// Returns the last parts of the names of all layer matrices that the architecture maps produce, with the name of the
// map.
std::set<std::pair<std::string, std::string>> mapped_matrices() {
  static const std::regex made(R"(to: '?blk\.\{layer\}\.([a-z0-9_.]+))");
  // Vectors, and tensors that are never quantized.
  static const std::regex skipped(
      R"(.*(norm(_\d|_exps)?|bias|_scale|_lerp_\w)|attn_sinks|exp_probs_b|ssm_(a|d|conv1d(_[qkv])?)|shortconv\.conv)");
  std::set<std::pair<std::string, std::string>> names;
  for (const auto& each : fs::directory_iterator("configs/architectures")) {
    const std::string text = read_text(each.path().string());
    for (std::sregex_iterator match(text.begin(), text.end(), made), end; match != end; ++match) {
      std::string name = (*match)[1];
      if (name.ends_with(".weight")) name.resize(name.size() - 7);
      if (!std::regex_match(name, skipped)) names.emplace(name, each.path().filename().string());
    }
  }
  return names;
}

}  // namespace

TEST_CASE("the output of a block counts by its share of the residual stream") {
  Measurement all = attention();
  all.tensors.push_back(tensor("blk.0.attn_q.weight", {2, {256, 256, 1, 1}}, 77));
  all.tensors.push_back(tensor("blk.0.ffn_down.weight", {2, {256, 256, 1, 1}}, 4));
  all.tensors.push_back(tensor("blk.0.ffn_up.weight", {2, {256, 256, 1, 1}}, 99));
  CHECK(by_stream(all).value() == std::vector<double>{1, 5, 3.0 / 4, 3.0 / 4, 4.0 / 8, 4.0 / 8});
}

TEST_CASE("an embedding that is also the head counts as both") {
  Measurement all;
  all.tensors.push_back(tensor("token_embd.weight", {2, {256, 10, 1, 1}}, 10));
  CHECK(by_stream(all).value() == std::vector<double>{1 + 5});
}

TEST_CASE("experts count by their use per token") {
  Measurement all = attention();
  all.tensors.push_back(tensor("blk.0.ffn_down_exps.weight", {3, {256, 256, 8, 1}}, 64));
  all.tensors.push_back(tensor("blk.0.ffn_up_exps.weight", {3, {256, 256, 8, 1}}, 1));
  // Two of eight experts: 64 / (8 * 2); then with weights that sum to 1.5.
  CHECK(by_stream(all, {2, 1}).value() == std::vector<double>{1, 5, 3.0 / 4, 4.0 / 8, 4.0 / 8});
  CHECK(by_stream(all, {2, 1.5}).value() == std::vector<double>{1, 5, 3.0 / 4, 9.0 / 13, 9.0 / 13});
  // The number of used experts is unknown.
  CHECK(by_stream(all).value()[3] == 64.0 / 68);
}

TEST_CASE("experts and shared experts count by what each of them writes") {
  Measurement all = attention();
  all.tensors.push_back(tensor("blk.0.ffn_down_exps.weight", {3, {256, 256, 8, 1}}, 64));
  all.tensors.push_back(tensor("blk.0.ffn_up_exps.weight", {3, {256, 256, 8, 1}}, 1));
  all.tensors.push_back(tensor("blk.0.ffn_down_shexp.weight", {2, {256, 256, 1, 1}}, 8));
  all.tensors.push_back(tensor("blk.0.ffn_gate_shexp.weight", {2, {256, 256, 1, 1}}, 1));
  all.tensors.push_back(tensor("blk.0.ffn_gate_inp.weight", {2, {256, 8, 1, 1}}, 1));  // of all experts
  const std::vector<double> counts = by_stream(all, {2, 1}).value();
  CHECK(std::vector(counts.begin() + 3, counts.end()) ==
        std::vector<double>{4.0 / 16, 4.0 / 16, 8.0 / 16, 8.0 / 16, 12.0 / 16});
}

TEST_CASE("a norm behind a block's output determines what the block writes") {
  Measurement all = attention();
  all.tensors.push_back(tensor("blk.0.attn_q.weight", {2, {256, 256, 1, 1}}, 77));
  all.tensors.push_back(tensor("blk.0.ffn_down.weight", {2, {256, 256, 1, 1}}, 5));
  StreamFacts facts;
  facts.norms[{0, 0}] = 9;
  CHECK(by_stream(all, facts).value() == std::vector<double>{1, 5, 9.0 / 10, 9.0 / 10, 5.0 / 15});
}

TEST_CASE("parts of a block behind one norm share what it lets through") {
  Measurement all = attention();
  all.tensors.push_back(tensor("blk.0.ffn_down_exps.weight", {3, {256, 256, 8, 1}}, 64));
  all.tensors.push_back(tensor("blk.0.ffn_down_shexp.weight", {2, {256, 256, 1, 1}}, 12));
  StreamFacts facts{2, 1};
  facts.norms[{0, 1}] = 12;
  const std::vector<double> counts = by_stream(all, facts).value();
  CHECK(std::vector(counts.begin() + 3, counts.end()) == std::vector<double>{0.75 * 0.25, 0.75 * 0.75});
}

TEST_CASE("the stream has scaled embeddings and outputs of blocks") {
  StreamFacts facts;
  facts.embedding_scale = 3;
  CHECK(by_stream(attention(), facts).value() == std::vector<double>{1, 5, 3.0 / 12});
  facts.block_scale = 2;
  CHECK(by_stream(attention(), facts).value() == std::vector<double>{1, 5, 12.0 / 21});
}

TEST_CASE("the energy of a matrix without importance is estimated from other layers") {
  Measurement all = attention();
  all.tensors.push_back({"blk.0.ffn_down.weight", "", {2, {256, 256, 1, 1}}, 8, 2, true, {}});
  all.tensors.push_back({"blk.1.attn_output.weight", "", {2, {256, 256, 1, 1}}, 2, 0, true, {}});  // all columns are 0
  all.tensors.push_back({"blk.1.ffn_down.weight", "", {2, {256, 256, 1, 1}}, 16, 0, false, {}});
  std::vector<const MeasuredTensor*> tensors;
  for (const MeasuredTensor& each : all.tensors) tensors.push_back(&each);
  const Objective stream = find_objective("stream", {}).value();
  const Sensitivities found = sensitivities(stream, tensors, all, {}).value();
  CHECK(found.counts == std::vector<double>{1, 5, 3.0 / 4, 2.0 / 6, 2.0 / 8, 4.0 / 12});
  CHECK(found.estimated == std::vector<std::string>{"blk.1.attn_output.weight", "blk.1.ffn_down.weight"});
  // The importance between two layers is their geometric mean.
  all.tensors.push_back({"blk.2.ffn_down.weight", "", {2, {256, 256, 1, 1}}, 1, 1, true, {}});
  CHECK(by_stream(all).value()[5] == 8.0 / 16);
  all.tensors.pop_back();
  StreamFacts facts;
  facts.first_extra_layer = 1;
  const Sensitivities extra = sensitivities(stream, tensors, all, {}, facts).value();
  CHECK(extra.counts == std::vector<double>{1, 5, 3.0 / 4, 2.0 / 6, 0, 0});
  CHECK(extra.estimated.empty());
}

TEST_CASE("every layer matrix of every architecture map has a role in `stream`") {
  const auto names = mapped_matrices();
  CHECK(names.size() > 100);
  for (const auto& [name, map] : names) {
    Measurement all = attention();
    all.tensors.push_back(tensor("blk.0.ffn_down.weight", {2, {256, 256, 1, 1}}, 4));
    all.tensors.push_back(tensor("blk.0." + name + ".weight", {2, {256, 256, 1, 1}}, 1));
    const auto counts = by_stream(all);
    INFO(map << ": " << name);
    CHECK(counts);
  }
}
