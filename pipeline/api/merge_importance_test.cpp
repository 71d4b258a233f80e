#include "pipeline/api/merge_importance.h"

#include "pipeline/io/platform/filesystem.h"
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

class Files {
 public:
  std::string gguf(const std::string& name, const std::vector<float>& sums, const std::vector<float>& counts) {
    GgufBuilder file = gguf_importance();
    add_entry(file, "blk.0.ffn_up.weight", sums, counts);
    return put(name, file.build());
  }
  std::string put(const std::string& name, const std::string& bytes) {
    write_text(folder_.file(name), bytes);
    return folder_.file(name);
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

 private:
  TempDir folder_;
};

ImportanceFile opened(const std::string& path) { return open_importance(path, gguf_opener()).value(); }

std::vector<float> numbers(const FloatRun& run) {
  std::vector<float> out(run.count);
  REQUIRE(run.read(0, out));
  return out;
}

}  // namespace

TEST_CASE("sums and counts of files are added, and data sets are listed in order") {
  Files files;
  const std::string a = files.gguf("a.gguf", {1, 2, 3, 4}, {512, 0}),
                    b = files.gguf("b.gguf", {1, 1, 1, 1}, {512, 1024});
  const auto merged = merge_importance({{opened(a)}, {opened(b), 0.5}}, {.output = files.path("c.gguf")});
  REQUIRE(merged);
  CHECK(merged.value().warnings.empty());
  const ImportanceFile c = opened(files.path("c.gguf"));
  REQUIRE(c.entries.size() == 1);
  CHECK(numbers(c.entries[0].sums) == std::vector<float>{1.5, 2.5, 3.5, 4.5});
  CHECK(numbers(c.entries[0].counts) == std::vector<float>{768, 512});
  CHECK(c.chunks == 2);  // 1.5, rounded to nearest
  CHECK(c.chunk_size == 512);
  CHECK(c.datasets == std::vector<std::string>{"a.txt", "b.txt", "a.txt", "b.txt"});
}

TEST_CASE("sums of activations are merged if all files have them") {
  Files files;
  GgufBuilder with = gguf_importance();
  with.metadata.push_back({"imatrix.n_layer_nextn", metadata_unsigned(MetadataType::kUint32, 1)});
  add_entry(with, "a", {1, 2}, {512});
  add_activations(with, "a", {-1, 3});
  const std::string one = files.put("a.gguf", with.build());
  GgufBuilder without = gguf_importance();
  add_entry(without, "a", {1, 2}, {512});
  const std::string other = files.put("b.gguf", without.build()), out = files.path("c.gguf");
  SECTION("both have them") {
    REQUIRE(merge_importance({{opened(one)}, {opened(one), 0.5}}, {.output = out}));
    const ImportanceFile merged = opened(out);
    CHECK(numbers(merged.entries[0].activations) == std::vector<float>{-1.5, 4.5});
    CHECK(merged.prediction_layers == 1);
  }
  SECTION("one has none") {
    REQUIRE(merge_importance({{opened(other)}, {opened(one)}}, {.output = out}));
    CHECK(opened(out).entries[0].activations.file == nullptr);
  }
}

TEST_CASE("a merged file has the tensors and keys of llama-imatrix in its order") {
  Files files;
  GgufBuilder file = gguf_importance();
  file.metadata.push_back({"imatrix.n_layer_nextn", metadata_unsigned(MetadataType::kUint32, 1)});
  add_entry(file, "b", {1, 2, 3, 4}, {512, 1});
  add_activations(file, "b", {-1, 3, 0, 1});
  add_entry(file, "a", {1, 2}, {512});
  const std::string path = files.put("a.gguf", file.build()), out = files.path("c.gguf");
  REQUIRE(merge_importance({{opened(path)}}, {.output = out}));
  const Model model = read_gguf(out).value();
  std::vector<std::string> names, keys;
  for (const Tensor& tensor : model.tensors) names.push_back(tensor.name);
  for (const MetadataEntry& entry : model.metadata.entries()) keys.push_back(entry.key);
  CHECK(names ==
        std::vector<std::string>{"a.in_sum2", "a.counts", "a.stats", "b.in_sum2", "b.counts", "b.in_sum", "b.stats"});
  CHECK(keys == std::vector<std::string>{"general.type", "imatrix.datasets", "imatrix.chunk_count",
                                         "imatrix.chunk_size", "imatrix.n_layer_nextn", "imatrix.stats_schema"});
  CHECK(model.tensors[2].shape().elements() == 12);
  CHECK(model.tensors[5].shape().dims[1] == 2);
}

TEST_CASE("files that disagree about prediction layers give a warning") {
  Files files;
  const auto file = [&](const std::string& name, std::uint32_t layers) {
    GgufBuilder builder = gguf_importance();
    builder.metadata.push_back({"imatrix.n_layer_nextn", metadata_unsigned(MetadataType::kUint32, layers)});
    add_entry(builder, "a", {1, 2}, {512});
    return opened(files.put(name, builder.build()));
  };
  const auto merged = merge_importance({{file("a.gguf", 1)}, {file("b.gguf", 2)}}, {.output = files.path("c.gguf")});
  REQUIRE(merged);
  REQUIRE(merged.value().warnings.size() == 1);
  CHECK(merged.value().warnings[0].find("2 layers predict further tokens, but 1 in a file before it") !=
        std::string::npos);
  CHECK(opened(files.path("c.gguf")).prediction_layers == 1);
}

TEST_CASE("converting from the older format and back keeps the weights") {
  Files files;
  const std::string old = files.put(
      "a.dat", legacy_importance({legacy_entry("blk.0.ffn_up.weight", 3, {6, 12})}, legacy_tail(3, "wiki.txt")));
  REQUIRE(merge_importance({{opened(old)}}, {.output = files.path("a.gguf")}));
  const ImportanceFile gguf = opened(files.path("a.gguf"));
  CHECK(numbers(gguf.entries[0].counts) == std::vector<float>{3 * 512});
  CHECK(gguf.datasets == std::vector<std::string>{"wiki.txt"});
  REQUIRE(merge_importance({{gguf}}, {.output = files.path("b.dat"), .format = ImportanceFormat::kLegacy}));
  CHECK(read_text(files.path("b.dat")) == read_text(old));
}

TEST_CASE("the older format omits entries that saw no token and writes 1 for such parts") {
  Files files;
  GgufBuilder file = gguf_importance();
  add_entry(file, "a", {0, 0}, {0});
  add_entry(file, "b", {512, 1024, 0, 0}, {512, 0});
  const std::string path = files.put("a.gguf", file.build());
  const auto merged =
      merge_importance({{opened(path)}}, {.output = files.path("a.dat"), .format = ImportanceFormat::kLegacy});
  REQUIRE(merged);
  CHECK(merged.value().warnings ==
        std::vector<std::string>{"a: 1 of 1 parts saw no token: skipped", "b: 1 of 2 parts saw no token"});
  const ImportanceFile legacy = opened(files.path("a.dat"));
  REQUIRE(legacy.entries.size() == 1);
  CHECK(numbers(legacy.entries[0].sums) == std::vector<float>{1, 2, 1, 1});
  CHECK(legacy.entries[0].calls == 1);
}

TEST_CASE("entries of two models are refused, and nothing is written") {
  Files files;
  const std::string a = files.gguf("a.gguf", {1, 2}, {512}), b = files.gguf("b.gguf", {1, 2, 3}, {512});
  const auto merged = merge_importance({{opened(a)}, {opened(b)}}, {.output = files.path("c.gguf")});
  REQUIRE_FALSE(merged);
  CHECK(merged.error().code == ExitCode::kBadInput);
  CHECK(merged.error().what == "the entry of tensor 'blk.0.ffn_up.weight' has 3 sums, but another file has 2");
  CHECK_FALSE(fs::exists(files.path("c.gguf")));
}

TEST_CASE("numbers that are not weights are refused, and nothing is written") {
  Files files;
  const std::string good = files.gguf("a.gguf", {1, 2}, {512}), bad = files.gguf("b.gguf", {1, -2}, {512});
  const auto format = GENERATE(ImportanceFormat::kGguf, ImportanceFormat::kLegacy);
  const std::string out = files.path("c.gguf");
  for (const auto& merged : {merge_importance({{opened(bad)}}, {.output = out, .format = format}),
                             merge_importance({{opened(good)}, {opened(bad)}}, {.output = out, .format = format})}) {
    REQUIRE_FALSE(merged);
    CHECK(merged.error().code == ExitCode::kBadInput);
    CHECK(merged.error().where == bad);
    CHECK(merged.error().what == "the entry of tensor 'blk.0.ffn_up.weight' contains a negative number: value 1");
    CHECK_FALSE(fs::exists(out));
  }
}

TEST_CASE("the stage computes from several files what it reads from their merged file") {
  Files files;
  const std::string name = "blk.0.ffn_up.weight", a = files.gguf("a.gguf", {1, 2, 3, 4}, {5, 0}),
                    b = files.gguf("b.gguf", {0.1f, 0.2f, 0.3f, 0.4f}, {3, 7}), out = files.path("merged.gguf"),
                    c = files.put("c.dat", legacy_importance({legacy_entry(name, 3, {6, 12, 1, 2})}));
  REQUIRE(merge_importance({a + "=2.3", b, c + "=0.7"}, out, std::nullopt, false, gguf_opener()));
  Model model;
  model.tensors = {bare_tensor(name, {2, 1, 2})};
  const auto run = [&](const std::string& options) {
    return apply_stage(importance_stage(gguf_opener()), "{" + options + "}", model).value();
  };
  const Model one = run("file: '" + out + "'"),
              many = run("files: [{path: '" + a + "', weight: 2.3}, '" + b + "', {path: '" + c + "', weight: 0.7}]");
  CHECK(many.tensors[0].importance->fingerprint == one.tensors[0].importance->fingerprint);
  for (const std::uint64_t matrix : {0, 1})
    CHECK(read_weights(*many.tensors[0].importance, matrix).value() ==
          read_weights(*one.tensors[0].importance, matrix).value());
  CHECK(*many.metadata.find("quantize.imatrix.chunks_count") == *one.metadata.find("quantize.imatrix.chunks_count"));
}

TEST_CASE("a merge never writes over what it reads") {
  Files files;
  const std::string a = files.gguf("a.gguf", {1, 2}, {512}), before = read_text(a);
  const auto merged = merge_importance({{opened(a)}}, {.output = a, .overwrite = true});
  REQUIRE_FALSE(merged);
  CHECK(merged.error().code == ExitCode::kUsage);
  CHECK(read_text(a) == before);
}
