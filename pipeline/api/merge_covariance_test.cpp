#include "pipeline/api/merge_covariance.h"

#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

class CovarianceFiles {
 public:
  std::string put(const std::string& name, const GgufBuilder& file) {
    file.write(path(name));
    return path(name);
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  Error fault(const std::vector<std::string>& inputs) {
    const auto merged = merge_importance(inputs, path("sum.gguf"), {}, true, gguf_opener());
    REQUIRE_FALSE(merged);
    CHECK(merged.error().code == ExitCode::kBadInput);
    return merged.error();
  }

 private:
  TempDir folder_;
};

CovarianceFile opened_covariance(const std::string& path) { return open_covariance(path, gguf_opener()).value(); }

std::vector<float> correlations(const CovarianceInput& input) {
  std::vector<float> all(*input.covariance.packing().length());
  REQUIRE(input.read(0, 0, all));
  return all;
}

const RandomInputs kInput{{"a", "b"}, 12};

}  // namespace

TEST_CASE("merged covariance files have the bytes of the specification") {
  const CovarianceFiles files;
  const std::string golden = "tests/golden/covariance/";
  const auto merged = merge_importance({golden + "merge-a.gguf", golden + "merge-b.gguf"}, files.path("ab.gguf"), {},
                                       false, gguf_opener());
  if (!merged) FAIL(render(merged.error()));
  CHECK(merged.value().entries == 3);
  CHECK((read_text(files.path("ab.gguf")) == read_text(golden + "merge-ab.gguf")));
}

TEST_CASE("a file merged with itself, or given a weight, has the same correlations") {
  CovarianceFiles files;
  const std::string one = files.put("a.gguf", gguf_covariance({kInput}, 5));
  const std::string two = files.path("two.gguf");
  const std::vector<std::string> inputs = GENERATE(true, false) ? std::vector{one, one} : std::vector{one + "=2"};
  REQUIRE(merge_importance(inputs, two, {}, true, gguf_opener()));
  const CovarianceFile before = opened_covariance(one), after = opened_covariance(two);
  CHECK(after.block == 5);
  CHECK(after.importance.chunks == 2 * before.importance.chunks);
  CHECK(after.importance.datasets == before.importance.datasets);
  CHECK(correlations(after.inputs[0]) == correlations(before.inputs[0]));
  std::vector<float> sums(12), twice(12);
  REQUIRE(before.inputs[0].read_sums(0, 0, sums));
  REQUIRE(after.inputs[0].read_sums(0, 0, twice));
  for (float& sum : sums) sum *= 2;
  CHECK(twice == sums);
}

TEST_CASE("files of different texts are merged to the covariance of both") {
  CovarianceFiles files;
  const std::string a = files.put("a.gguf", gguf_covariance({kInput}, 0, 1));
  const std::string b = files.put("b.gguf", gguf_covariance({kInput}, 0, 2));
  REQUIRE(merge_importance({a, b}, files.path("ab.gguf"), {}, false, gguf_opener()));
  REQUIRE(merge_importance({b, a}, files.path("ba.gguf"), {}, false, gguf_opener()));
  const std::vector<float> ab = correlations(opened_covariance(files.path("ab.gguf")).inputs[0]);
  CHECK(ab == correlations(opened_covariance(files.path("ba.gguf")).inputs[0]));
  CHECK(ab != correlations(opened_covariance(a).inputs[0]));
}

TEST_CASE("held-out vectors of merged files follow each other, up to the greatest number") {
  CovarianceFiles files;
  const auto with = [&](const std::string& name, std::size_t held_out, std::uint32_t seed) {
    return files.put(name, gguf_covariance({{{"a", "b"}, 12, {40}, false, 12, held_out}}, 0, seed));
  };
  const auto vectors = [](const std::string& path) {
    const CovarianceFile file = opened_covariance(path);
    std::vector<float> all(file.inputs[0].covariance.held_out * 12);
    if (!all.empty()) REQUIRE(file.inputs[0].read_vectors(0, 0, all));
    return all;
  };
  const std::string a = with("a.gguf", 600, 1), b = with("b.gguf", 300, 2), none = with("none.gguf", 0, 3);
  const std::string sum = files.path("sum.gguf");
  REQUIRE(merge_importance({a, b}, sum, {}, true, gguf_opener()));
  std::vector<float> expected = vectors(a), second = vectors(b);
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(vectors(sum) == expected);
  REQUIRE(merge_importance({a, a}, sum, {}, true, gguf_opener()));
  CHECK(vectors(sum).size() == 1024 * 12);
  const auto merged = merge_importance({a, none}, sum, {}, true, gguf_opener());
  REQUIRE(merged);
  CHECK(vectors(sum).empty());
  CHECK(merged.value().warnings == std::vector<std::string>{none + " has no held-out vectors, so the sum has none"});
}

TEST_CASE("only the importance is written where it is asked for, or the format has no place for more") {
  CovarianceFiles files;
  const std::string one = files.put("a.gguf", gguf_covariance({kInput}, 0));
  const std::string out = files.path(GENERATE("importance.gguf", "importance.dat"));
  const Covariances wanted = out.ends_with(".dat") ? Covariances::kMerge : Covariances::kOmit;
  REQUIRE(merge_importance({one}, out, {}, false, gguf_opener(), wanted));
  CHECK(open_importance(out, gguf_opener()).value().entries.size() == 2);
  CHECK_FALSE(open_covariance(out, gguf_opener()));
}

TEST_CASE("files that do not describe the same inputs in the same form are not merged") {
  CovarianceFiles files;
  const std::string one = files.put("a.gguf", gguf_covariance({kInput}, 0));
  const auto other = [&](const GgufBuilder& file) { return files.fault({one, files.put("b.gguf", file)}).what; };
  CHECK(other(gguf_covariance({kInput}, 4)) ==
        "it has covariances in blocks of 4 columns, but " + one + " has the covariances of all columns");
  CHECK(other(gguf_covariance({{{"a"}, 12}, {{"b"}, 12}}, 0)) == "it does not have the input of 'a' of " + one);
  CHECK(other(gguf_covariance({{{"a", "b"}, 11}}, 0)) == "the input of 'a' has another shape than in " + one);
  CHECK(other(gguf_covariance({kInput, {{"c"}, 4}}, 0)) == "it has 2 inputs, but " + one + " has 1");
  GgufBuilder longer = gguf_covariance({kInput}, 0);
  longer.metadata[3].value = metadata_unsigned(MetadataType::kUint32, 1024);
  CHECK(other(longer) == "it has chunks of 1024 tokens, but " + one + " of 512");
  GgufBuilder importance = gguf_importance();
  add_entry(importance, "a", std::vector<float>(12, 1), {1});
  const Error mixed = files.fault({one, files.put("b.gguf", importance)});
  CHECK(mixed.where == files.path("b.gguf"));
  CHECK(mixed.what == "it has no covariances, but " + one + " has");
}

TEST_CASE("invalid numbers stop a merge, and nothing is written") {
  CovarianceFiles files;
  GgufBuilder bad = gguf_covariance({kInput}, 0);
  bad.tensors.back().data.replace(40, 2, "\x01\x7e");
  const std::string one = files.put("a.gguf", bad);
  CHECK(files.fault({one, one}).what == "the correlations of the input of 'a' contain NaN; they are from -1 to 1");
  CHECK_FALSE(fs::exists(files.path("sum.gguf")));
}
