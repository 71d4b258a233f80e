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
  CHECK(c.chunks == 1);
  CHECK(c.chunk_size == 512);
  CHECK(c.datasets == std::vector<std::string>{"a.txt", "b.txt", "a.txt", "b.txt"});
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
