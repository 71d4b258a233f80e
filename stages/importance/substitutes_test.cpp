// Importance of experts and tensors with too little data of their own, and sums of several files.

#include "stages/gguf/gguf.h"
#include "stages/importance/importance_stage.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

struct GivenEntry {
  std::string name;
  std::vector<float> sums, counts;
};

// Runs the stage on a model of experts, {2, 1, 3}, and of the tensor `up` in five layers, {2, 3}.
class Moe {
 public:
  Moe() {
    model.tensors.push_back(bare_tensor("blk.0.exps.weight", {2, 1, 3}));
    for (int layer = 0; layer < 5; ++layer)
      model.tensors.push_back(bare_tensor("blk." + std::to_string(layer) + ".up.weight", {2, 3}));
    model.tensors.push_back(bare_tensor("output.weight", {2, 3}));
  }

  std::string write(const std::string& name, const std::vector<GivenEntry>& entries) {
    GgufBuilder file = gguf_importance();
    for (const GivenEntry& entry : entries) add_entry(file, entry.name, entry.sums, entry.counts);
    return put(name, file.build());
  }
  std::string put(const std::string& name, const std::string& bytes) {
    write_text(path(name), bytes);
    return path(name);
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  Result<Model> run(const std::string& options) const {
    return apply_stage(importance_stage(gguf_opener()), "{" + options + "}", model);
  }
  // Runs the stage with one file of these entries.
  Model with(const std::vector<GivenEntry>& entries, const std::string& options) {
    return run("file: '" + write("imatrix.gguf", entries) + "', " + options).value();
  }

  Model model;

 private:
  TempDir folder_;
};

const Tensor& tensor(const Model& model, const std::string& name) {
  return *std::ranges::find(model.tensors, name, &Tensor::name);
}

// Returns the weights of all matrices.
std::vector<float> weights_in(const Model& model, const std::string& name) {
  const Tensor& found = tensor(model, name);
  std::vector<float> all;
  if (!found.importance) return all;
  for (std::uint64_t matrix = 0; matrix < found.shape().dims[2]; ++matrix) {
    const std::vector<float> more = read_weights(*found.importance, matrix).value();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::string note_of(const Model& model, const std::string& name) { return tensor(model, name).importance->note; }

std::vector<std::string> problems_in(const Model& model) {
  std::vector<std::string> all;
  for (const Error& problem : model.problems) all.push_back(problem.what);
  return all;
}

const std::string kExperts = "blk.0.exps.weight";
// Weights of 1 and 2, of 7 and 8, and of 5 and 6 with a single token.
const std::vector<GivenEntry> kRare = {{kExperts, {4, 8, 14, 16, 5, 6}, {4, 2, 1}}};

std::vector<GivenEntry> up_in(const std::vector<std::pair<int, std::vector<float>>>& layers) {
  std::vector<GivenEntry> entries;
  for (const auto& [layer, sums] : layers)
    entries.push_back({"blk." + std::to_string(layer) + ".up.weight", sums, {1}});
  return entries;
}

}  // namespace

TEST_CASE("experts that saw enough tokens keep their data") {
  Moe moe;
  const Model model = moe.with(kRare, "missing: mean");
  CHECK(weights_in(model, kExperts) == std::vector<float>{1, 2, 7, 8, 5, 6});
  CHECK(note_of(model, kExperts).empty());
  CHECK(model.warnings.empty());
}

TEST_CASE("importance says how many tokens each expert saw") {
  Moe moe;
  CHECK(tensor(moe.with(kRare, "missing: mean, least_counts: 2"), kExperts).importance->tokens ==
        std::vector<std::int64_t>{4, 2, 1});
  CHECK(
      tensor(moe.with({{kExperts, {4, 8, 14, 16, 5, 6}, {4}}}, "missing: mean"), kExperts).importance->tokens.empty());
}

TEST_CASE("rarely used experts get the mean over the tokens of the others") {
  Moe moe;
  const Model model = moe.with(kRare, "missing: mean, least_counts: 2");
  CHECK(weights_in(model, kExperts) == std::vector<float>{1, 2, 7, 8, 3, 4});  // (4 + 14) / 6, (8 + 16) / 6
  CHECK(note_of(model, kExperts) == "importance of 1 of 3 experts is taken from the mean of the others");
  CHECK(model.warnings == std::vector<std::string>{moe.path("imatrix.gguf") +
                                                   ": tensors or experts that saw fewer than 2 tokens get the mean of "
                                                   "the others (in 1 tensor): 'blk.0.exps.weight' (1 of 3)"});
}

TEST_CASE("experts without tokens have weights of 1 by default") {
  Moe moe;
  const Model model = moe.with({{kExperts, {4, 8, 14, 16, 5, 6}, {4, 2, 0}}}, "missing: none");
  CHECK(weights_in(model, kExperts) == std::vector<float>{1, 2, 7, 8, 1, 1});
  CHECK(note_of(model, kExperts) == "importance of 1 of 3 experts is not used");
}

TEST_CASE("rarely used experts have weights of 1 with none") {
  Moe moe;
  const Model model = moe.with(kRare, "missing: none, least_counts: 3");
  CHECK(weights_in(model, kExperts) == std::vector<float>{1, 2, 1, 1, 1, 1});
}

TEST_CASE("rarely used experts are problems if requested") {
  Moe moe;
  const Model model = moe.with(kRare, "missing: error, least_counts: 2, include: [exps]");
  CHECK(problems_in(model) ==
        std::vector<std::string>{"1 of 3 experts of tensor 'blk.0.exps.weight' saw fewer than 2 tokens"});
}

TEST_CASE("numbers of rarely used experts are checked") {
  Moe moe;
  const std::string file = moe.write("imatrix.gguf", {{kExperts, {4, 8, 14, 16, -5, 6}, {4, 2, 1}}});
  const auto model = moe.run("file: '" + file + "', missing: mean, least_counts: 2");
  REQUIRE_FALSE(model);
  CHECK(model.error().what == "the entry of tensor 'blk.0.exps.weight' contains a negative number: value 4");
}

TEST_CASE("a tensor none of whose experts saw enough has no importance with mean") {
  Moe moe;
  const Model model = moe.with({{kExperts, {4, 8, 14, 16, 5, 6}, {4, 2, 1}}}, "missing: mean, least_counts: 9");
  CHECK_FALSE(tensor(model, kExperts).importance);
}

TEST_CASE("substitutes are part of the fingerprint") {
  const auto print = [](const std::string& options) {
    return tensor(Moe().with(kRare, options), kExperts).importance->fingerprint;
  };
  CHECK(print("missing: mean") == print("missing: none"));
  CHECK(print("missing: mean, least_counts: 2") != print("missing: mean"));
  CHECK(print("missing: mean, least_counts: 2") != print("missing: none, least_counts: 2"));
}

TEST_CASE("tensors without data get that of the nearest layer") {
  Moe moe;
  const Model model = moe.with(up_in({{1, {1, 2}}, {4, {5, 6}}}), "missing: neighbours");
  CHECK(weights_in(model, "blk.0.up.weight") == std::vector<float>{1, 2});
  CHECK(weights_in(model, "blk.2.up.weight") == std::vector<float>{1, 2});
  CHECK(weights_in(model, "blk.3.up.weight") == std::vector<float>{5, 6});
  CHECK(note_of(model, "blk.3.up.weight") == "importance is taken from blk.4.up.weight");
}

TEST_CASE("two layers that are equally near count the same") {
  Moe moe;
  const Model model = moe.with(up_in({{1, {1, 2}}, {3, {5, 7}}}), "missing: neighbours");
  CHECK(weights_in(model, "blk.2.up.weight") == std::vector<float>{3, 4.5});
  CHECK(note_of(model, "blk.2.up.weight") ==
        "importance is taken from the mean of blk.1.up.weight and blk.3.up.weight");
}

TEST_CASE("layers as far apart as their numbers allow are neighbours at once") {
  Moe moe;
  const std::string last = "blk." + std::to_string(kMaxLayers - 1) + ".up.weight";
  moe.model.tensors.push_back(bare_tensor(last, {2, 3}));
  const Model model = moe.with(up_in({{0, {1, 2}}}), "missing: neighbours");
  CHECK(weights_in(model, last) == std::vector<float>{1, 2});
}

TEST_CASE("tensors that took data are not neighbours to others") {
  Moe moe;
  const Model model = moe.with(up_in({{0, {1, 2}}}), "missing: neighbours");
  CHECK(weights_in(model, "blk.4.up.weight") == std::vector<float>{1, 2});
  CHECK(note_of(model, "blk.4.up.weight") == "importance is taken from blk.0.up.weight");
}

TEST_CASE("layers with other columns are not neighbours") {
  Moe moe;
  moe.model.tensors[2] = bare_tensor("blk.1.up.weight", {3, 3});
  const Model model = moe.with(up_in({{1, {1, 2, 3}}, {4, {5, 6}}}), "missing: neighbours");
  CHECK(weights_in(model, "blk.0.up.weight") == std::vector<float>{5, 6});
}

TEST_CASE("all experts of a tensor without data get the mean over those of the nearest layer") {
  Moe moe;
  moe.model.tensors.push_back(bare_tensor("blk.1.exps.weight", {2, 1, 2}));
  const Model model = moe.with(kRare, "missing: neighbours, least_counts: 2");
  CHECK(weights_in(model, "blk.1.exps.weight") == std::vector<float>{3, 4, 3, 4});
}

TEST_CASE("tensors without a neighbour are reported") {
  Moe moe;
  const Model model = moe.with(kRare, "missing: neighbours, include: [exps, blk.4, output]");
  CHECK(model.warnings.back() == moe.path("imatrix.gguf") +
                                     ": 1 tensor has no data in any layer and gets no "
                                     "importance: 'blk.4.up.weight'");
  CHECK_FALSE(tensor(model, "output.weight").importance);
}

TEST_CASE("excluded tensors take no data from neighbours") {
  Moe moe;
  const Model model = moe.with(up_in({{1, {1, 2}}}), "missing: neighbours, exclude: ['blk.2']");
  CHECK_FALSE(tensor(model, "blk.2.up.weight").importance);
}

TEST_CASE("the sums and counts of several files are added") {
  Moe moe;
  const std::string a = moe.write("a.gguf", kRare),
                    b = moe.write("b.gguf", {{kExperts, {1, 2, 3, 4, 6, 7}, {0, 2, 1}}});
  const Model model = moe.run("files: [{path: '" + a + "', weight: 2}, '" + b + "']").value();
  CHECK(weights_in(model, kExperts) ==
        std::vector<float>{9.0f / 8, 18.0f / 8, 31.0f / 6, 36.0f / 6, 16.0f / 3, 19.0f / 3});
  CHECK(*model.metadata.find("quantize.imatrix.file") == metadata_string((a + "=2, " + b).substr(0, 127)));
}

TEST_CASE("a list of one file is that file") {
  Moe moe;
  const std::string file = moe.put("c.dat", legacy_importance({legacy_entry(kExperts, 3, {6, 12, 1, 2, 3, 4})}));
  const Model one = moe.run("file: '" + file + "'").value(),
              list = moe.run("files: [{path: '" + file + "', weight: 7}]").value();
  CHECK(weights_in(list, kExperts) == weights_in(one, kExperts));
}

TEST_CASE("counts of several files are added before experts are rare") {
  Moe moe;
  const std::string a = moe.write("a.gguf", kRare);
  const Model model = moe.run("files: ['" + a + "', '" + a + "'], missing: mean, least_counts: 2").value();
  CHECK(note_of(model, kExperts).empty());
}

TEST_CASE("files of two models cannot be added") {
  Moe moe;
  const std::string a = moe.write("a.gguf", kRare), b = moe.write("b.gguf", {{kExperts, {1, 2}, {1}}});
  const auto model = moe.run("files: ['" + a + "', '" + b + "']");
  REQUIRE_FALSE(model);
  CHECK(model.error().what == "the entry of tensor 'blk.0.exps.weight' has 2 sums, but another file has 6");
}

TEST_CASE("weights of files are above 0") {
  const auto model = Moe().run("files: [{path: a.gguf, weight: 0}]");
  REQUIRE_FALSE(model);
  CHECK(model.error().what == "a weight is a number above 0");
}

TEST_CASE("weights that are all 0 are used as they are by default, with a warning") {
  Moe moe;
  const Model model =
      moe.with({{kExperts, {1, 2, 0, 0, 3, 4}, {1, 1, 1}}, {"blk.1.up.weight", {0, 0}, {1}}}, "record: true");
  CHECK(weights_in(model, kExperts) == std::vector<float>{1, 2, 0, 0, 3, 4});
  CHECK(weights_in(model, "blk.1.up.weight") == std::vector<float>{0, 0});
  REQUIRE(model.warnings.size() == 1);
  CHECK(model.warnings[0].find("is 0 in every column") != std::string::npos);
  CHECK(model.warnings[0].find("'blk.0.exps.weight' (1 of 3), 'blk.1.up.weight'") != std::string::npos);
}

TEST_CASE("weights that are all 0 count as missing with another policy") {
  const std::vector<GivenEntry> entries = {
      {kExperts, {1, 2, 0, 0, 3, 4}, {1, 1, 1}}, {"blk.1.up.weight", {0, 0}, {1}}, {"blk.2.up.weight", {5, 6}, {1}}};
  Moe moe;
  const Model mean = moe.with(entries, "missing: mean");
  CHECK(weights_in(mean, kExperts) == std::vector<float>{1, 2, 2, 3, 3, 4});
  CHECK_FALSE(tensor(mean, "blk.1.up.weight").importance);
  const Model neighbours = moe.with(entries, "missing: neighbours");
  CHECK(weights_in(neighbours, "blk.1.up.weight") == std::vector<float>{5, 6});
  const std::vector<std::string> problems = problems_in(moe.with(entries, "missing: error"));
  CHECK(std::ranges::count(problems, "the data of tensor 'blk.1.up.weight' is all zeros") == 1);
  CHECK(std::ranges::count(problems, "1 of 3 experts of tensor 'blk.0.exps.weight' have only zeros") == 1);
}

TEST_CASE("the mean of experts that all saw no token does not exist, which is a warning") {
  Moe moe;
  const Model model = moe.with({{kExperts, {0, 0, 0, 0, 0, 0}, {0, 0, 0}}}, "missing: mean");
  CHECK_FALSE(tensor(model, kExperts).importance);
  REQUIRE(model.warnings.size() == 1);
  CHECK(model.warnings[0].ends_with("no expert has data, so there is no importance for 1 tensor: 'blk.0.exps.weight'"));
}
