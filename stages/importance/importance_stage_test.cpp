#include "stages/importance/importance_stage.h"

#include "stages/gguf/gguf.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Floats = std::vector<float>;

// Runs the stage with an importance file on a model of two tensors: a.weight (2 x 3) and b.weight (1 x 2 x 2).
struct Bench {
  TempDir folder;
  std::string path = folder.file("imatrix.gguf");
  Model model;

  Bench() { model.tensors = {bare_tensor("a.weight", {2, 3}), bare_tensor("b.weight", {1, 2, 2})}; }

  void give(const std::vector<std::pair<std::string, Floats>>& entries) {
    GgufBuilder file = gguf_importance();
    for (const auto& [name, sums] : entries) add_entry(file, name, sums, {1});
    file.write(path);
  }
  Result<Model> run(const std::string& options = "") const {
    return apply_stage(importance_stage(gguf_opener()), "{file: '" + path + "'" + options + "}", model);
  }
};

Floats weights(const Tensor& tensor, std::uint64_t matrix = 0) {
  REQUIRE(tensor.importance);
  return read_weights(*tensor.importance, matrix).value();
}

std::vector<std::string> problems(const Model& model) {
  std::vector<std::string> all;
  for (const Error& problem : model.problems) {
    CHECK(problem.code == ExitCode::kBadInput);
    all.push_back(problem.what);
  }
  return all;
}

const std::vector<std::pair<std::string, Floats>> kBoth = {{"a.weight", {1, 2}}, {"b.weight", {3, 4}}};
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("tensors get the weights of their matrices") {
  Bench bench;
  bench.give(kBoth);
  const Model model = bench.run().value();
  CHECK(model.notes.get(notes::kImportanceGiven));
  CHECK(weights(model.tensors[0]) == Floats{1, 2});
  CHECK(weights(model.tensors[1], 0) == Floats{3});
  CHECK(weights(model.tensors[1], 1) == Floats{4});
  CHECK(model.tensors[0].importance->fingerprint != model.tensors[1].importance->fingerprint);
  CHECK(model.problems.empty());
  CHECK(model.warnings.empty());
}

TEST_CASE("slices of a fourth dimension share the weights") {
  Bench bench;
  bench.model.tensors = {bare_tensor("b.weight", {1, 1, 2, 2})};
  bench.give({{"b.weight", {3, 4}}});
  const Model model = bench.run().value();
  CHECK(weights(model.tensors[0], 2) == Floats{3});
  CHECK(weights(model.tensors[0], 3) == Floats{4});
}

TEST_CASE("a file that changes after the check is detected") {
  Bench bench;
  bench.give(kBoth);
  const Model model = bench.run().value();
  std::string bytes = read_text(bench.path);
  const std::size_t at = bytes.find(float_bytes({1, 2}));
  REQUIRE(at != std::string::npos);
  write_text(bench.path, bytes.replace(at, 4, float_bytes({-1})));
  const auto changed = read_weights(*model.tensors[0].importance, 0);
  REQUIRE_FALSE(changed);
  CHECK(changed.error().what == "the entry of tensor 'a.weight' contains a negative number: value 0");
}

TEST_CASE("include and exclude select the entries") {
  Bench bench;
  bench.give(kBoth);
  CHECK_FALSE(bench.run(", include: ['^b']").value().tensors[0].importance);
  CHECK(bench.run(", include: ['^b', a]").value().tensors[0].importance);
  CHECK_FALSE(bench.run(", exclude: ['^x', '^a\\.w']").value().tensors[0].importance);
  CHECK(bench.run(", exclude: ['^a']").value().tensors[1].importance);
  const auto both = bench.run(", include: [a], exclude: [b]");
  REQUIRE_FALSE(both);
  CHECK(both.error().what == "both include and exclude are given");
}

TEST_CASE("if no entries are left, no importance is given") {
  Bench bench;
  bench.give(kBoth);
  const Model model = bench.run(", include: [zzz]").value();
  CHECK_FALSE(model.notes.get(notes::kImportanceGiven));
  CHECK(model.metadata.entries().empty());
  CHECK(model.warnings ==
        Texts{bench.path + ": no entry matches 'zzz'", bench.path + ": include or exclude leaves no entries"});
}

TEST_CASE("a pattern that matches no entry gives a warning") {
  Bench bench;
  bench.give(kBoth);
  CHECK(bench.run(", exclude: ['^a', 'y+', b]").value().warnings ==
        Texts{bench.path + ": no entry matches 'y+'", bench.path + ": include or exclude leaves no entries"});
}

TEST_CASE("numbers of excluded entries are not checked") {
  Bench bench;
  bench.give({{"a.weight", {1, -2}}, {"b.weight", {3, 4}}});
  CHECK(bench.run(", exclude: ['^a']"));
  const auto bad = bench.run();
  REQUIRE_FALSE(bad);
  CHECK(bad.error().what == "the entry of tensor 'a.weight' contains a negative number: value 1");
}

TEST_CASE("an entry of the wrong size is a problem for a converted tensor") {
  Bench bench;
  bench.give({{"a.weight", {1, 2, 3}}, {"b.weight", {3, 4}}});
  bench.model.tensors[0].type = &type_named("F16");
  const Model model = bench.run(", missing: error").value();
  CHECK(problems(model) == Texts{"the entry of tensor 'a.weight' has 3 values, but the tensor (2 x 3) needs 2"});
  CHECK_FALSE(model.tensors[0].importance);
}

TEST_CASE("an entry of the wrong size is recorded as an error of a tensor with an undecided type") {
  Bench bench;
  bench.give({{"a.weight", {1, 2, 3}}, {"b.weight", {3, 4}}});
  const Model model = bench.run(", missing: error").value();
  CHECK(model.problems.empty());
  CHECK_FALSE(model.tensors[0].importance);
  REQUIRE(model.tensors[0].importance_fault);
  CHECK(model.tensors[0].importance_fault->code == ExitCode::kBadInput);
  CHECK(model.tensors[0].importance_fault->what ==
        "the entry of tensor 'a.weight' has 3 values, but the tensor (2 x 3) needs 2");
  CHECK_FALSE(model.tensors[1].importance_fault);
}

TEST_CASE("an entry of the wrong size for token embeddings is ignored") {
  Bench bench;
  bench.model.tensors[0].name = "token_embd.weight";
  bench.give({{"token_embd.weight", {1, 2, 3}}, {"b.weight", {3, 4}}});
  const Model model = bench.run(", missing: error").value();
  CHECK(model.problems.empty());
  CHECK(model.warnings == Texts{bench.path + ": the entry of tensor 'token_embd.weight' has 3 values, but the tensor "
                                             "(2 x 3) needs 2: ignored"});
}

TEST_CASE("tensors without data are problems if requested") {
  Bench bench;
  bench.model.tensors.push_back(bare_tensor("norm.weight", {8}));
  bench.model.tensors.push_back(bare_tensor("a.bias", {8, 2}));
  bench.model.tensors.push_back(bare_tensor("token_embd.weight"));
  bench.give({{"b.weight", {3, 4}}});
  CHECK(bench.run().value().problems.empty());
  CHECK(problems(bench.run(", missing: error").value()) == Texts{"it has no data for tensor 'a.weight'"});
  CHECK(bench.run(", missing: error, exclude: ['^a']").value().problems.empty());
}

TEST_CASE("entries of other tensors give one warning") {
  Bench bench;
  bench.give({{"a.weight", {1, 2}}, {"c", {1}}, {"d", {1}}, {"e", {1}}, {"f", {1}}});
  CHECK(bench.run().value().warnings ==
        Texts{bench.path + ": 4 of 5 entries match no tensor of the model: 'c', 'd', 'e', ..."});
}

TEST_CASE("a file of another model is a problem") {
  Bench bench;
  bench.give({{"c", {1}}, {"d", {1}}});
  const Model model = bench.run().value();
  CHECK(problems(model) == Texts{"none of its 2 entries matches a tensor of the model: 'c', 'd'"});
  CHECK(model.notes.get(notes::kImportanceGiven));
}

TEST_CASE("a file of another model is a warning if allowed") {
  Bench bench;
  bench.give({{"c", {1}}});
  const Model model = bench.run(", any_model: true").value();
  CHECK(model.problems.empty());
  CHECK(model.warnings == Texts{bench.path + ": 1 of 1 entries match no tensor of the model: 'c'"});
  CHECK(model.notes.get(notes::kImportanceGiven));
}

TEST_CASE("each of several files must match a tensor") {
  Bench bench;
  bench.give(kBoth);
  const std::string other = bench.folder.file("other.gguf");
  GgufBuilder file = gguf_importance();
  add_entry(file, "c", {1}, {1});
  file.write(other);
  const auto with = [&](const std::string& options) {
    const std::string files = "{files: ['" + bench.path + "', '" + other + "']" + options + "}";
    return apply_stage(importance_stage(gguf_opener()), files, bench.model).value();
  };
  const Model model = with("");
  CHECK(problems(model) == Texts{"none of its 1 entries matches a tensor of the model: 'c'"});
  CHECK(model.problems.at(0).where == other);
  CHECK(model.warnings.empty());
  const Model allowed = with(", any_model: true");
  CHECK(allowed.problems.empty());
  CHECK(allowed.warnings == Texts{other + ": 1 of 1 entries match no tensor of the model: 'c'"});
}

TEST_CASE("the output records the importance file") {
  Bench bench;
  bench.give(kBoth);
  bench.model.metadata.add("quantize.imatrix.entries_count", metadata_string("old"));
  bench.model.metadata.add("x", metadata_string("y"));
  const Model model = bench.run(", include: [a]").value();
  const auto& entries = model.metadata.entries();
  REQUIRE(entries.size() == 5);
  CHECK(entries[1].key == "quantize.imatrix.file");
  CHECK(entries[1].value == metadata_string(bench.path.substr(0, 127)));
  CHECK(entries[2].key == "quantize.imatrix.dataset");
  CHECK(entries[2].value == metadata_string("a.txt"));
  CHECK(entries[3].key == "quantize.imatrix.entries_count");
  CHECK(entries[3].value == metadata_unsigned(MetadataType::kUint32, 1));
  CHECK(entries[4].key == "quantize.imatrix.chunks_count");
  CHECK(entries[4].value == metadata_unsigned(MetadataType::kUint32, 7));
  CHECK(bench.run(", record: false").value().metadata.entries().size() == 2);
}

TEST_CASE("an importance file that does not exist is an error") {
  const Bench bench;
  const auto model = bench.run();
  REQUIRE_FALSE(model);
  CHECK(model.error().code == ExitCode::kBadInput);
}

// The files are written by code that shares nothing with this stage.
TEST_CASE("synthetic importance is restored exactly in both formats") {
  const auto spec = synth::load_spec("tests/golden/models/tiny-moe.json");
  const TempDir folder;
  const std::string path = folder.file(GENERATE("imatrix.gguf", "imatrix.dat"));
  synth::write_imatrix(spec, 70, path);
  Model model;
  for (const auto& tensor : spec.tensors) model.tensors.push_back(bare_tensor(tensor.name, tensor.dims));
  model = apply_stage(importance_stage(gguf_opener()), "{file: '" + path + "', missing: error}", model).value();
  CHECK(model.problems.empty());
  std::uint64_t entries = 0;
  for (const Tensor& tensor : model.tensors) {
    CAPTURE(tensor.name);
    if (!tensor.importance) continue;
    const std::uint64_t matrices = tensor.shape().dims[2];
    const std::vector<float> expected = synth::importance(70 + entries++, tensor.shape().columns() * matrices);
    std::vector<float> found;
    for (std::uint64_t matrix = 0; matrix < matrices; ++matrix) {
      const std::vector<float> weights = read_weights(*tensor.importance, matrix).value();
      found.insert(found.end(), weights.begin(), weights.end());
    }
    CHECK(found == expected);
  }
  CHECK(entries > 30);
  CHECK(*model.metadata.find("quantize.imatrix.entries_count") == metadata_unsigned(MetadataType::kUint32, entries));
  CHECK(*model.metadata.find("quantize.imatrix.dataset") == metadata_string("calibration.txt"));
  CHECK(*model.metadata.find("quantize.imatrix.chunks_count") == metadata_unsigned(MetadataType::kUint32, 100));
}
