// Runs the entry points of the fuzzers on their seeds, and on damaged seeds that are the same in every run.

#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstdint>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// splitmix64 (Steele, Lea, Flood, 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t end) { return end == 0 ? 0 : static_cast<std::size_t>(next() % end); }

 private:
  std::uint64_t state_;
};

// Returns numbers near which readers fail: around powers of two, and around the wrap of 64-bit products.
std::uint64_t awkward_number(Random& random) {
  const std::uint64_t power = std::uint64_t{1} << random.below(64);
  switch (random.below(5)) {
    case 0:
      return power;
    case 1:
      return power - 1;
    case 2:
      return ~std::uint64_t{0} - random.below(64);
    case 3:
      return ~std::uint64_t{0} / (1 + random.below(64)) + random.below(3);
    default:
      return random.below(64);
  }
}

void damage_once(std::string& bytes, Random& random) {
  const std::size_t at = random.below(bytes.size());
  switch (random.below(6)) {
    case 0:
      bytes[at] = static_cast<char>(random.next());
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, 1 + random.below(16));
      break;
    case 4:
      bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(64)));
      break;
    default: {
      const std::uint64_t number = awkward_number(random);
      const std::size_t width = std::min<std::size_t>(random.below(2) ? 4 : 8, bytes.size() - at);
      bytes.replace(at, width, reinterpret_cast<const char*>(&number), width);
    }
  }
}

// Returns `bytes` with some damage that depends only on `seed`.
std::string damaged(std::string bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t times = 1 + random.below(4); times > 0 && !bytes.empty(); --times) damage_once(bytes, random);
  return bytes;
}

void check(const std::vector<std::string>& seeds, std::string (*fuzz)(std::string_view), std::uint64_t times) {
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    for (std::uint64_t k = 0; k <= times; ++k) {
      const std::string problem = fuzz(k == 0 ? seeds[i] : damaged(seeds[i], i * 1000000 + k));
      CAPTURE(i, k, problem);
      REQUIRE(problem.empty());
    }
  }
}

}  // namespace

TEST_CASE("no GGUF file, damaged or not, breaks the reader") {
  constexpr std::uint64_t kTimes = 60;
  constexpr std::size_t kGood = 7;
  const std::vector<std::string> seeds = gguf_seeds();
  check(seeds, fuzz_gguf, kTimes);
  // Damaged valid files reach the deepest code.
  check({seeds.begin(), seeds.begin() + kGood}, fuzz_gguf, 30 * kTimes);
}

TEST_CASE("no GGUF file, damaged or not, breaks what converts it") { check(convert_seeds(), fuzz_convert, 100); }

TEST_CASE("no pipeline file, damaged or not, breaks what parses it") { check(pipeline_seeds(), fuzz_pipeline, 3000); }

TEST_CASE("no safetensors file, damaged or not, breaks the reader") {
  check(safetensors_seeds(), fuzz_safetensors, 1000);
}

TEST_CASE("no file of PyTorch, damaged or not, breaks the reader") { check(torch_seeds(), fuzz_torch, 1000); }

TEST_CASE("no tokenizer.json, damaged or not, breaks the reader") {
  check(tokenizer_json_seeds(), fuzz_tokenizer_json, 1000);
}

TEST_CASE("no list of tokens, damaged or not, breaks the readers") { check(token_list_seeds(), fuzz_token_list, 3000); }

TEST_CASE("no tokenizer.model, damaged or not, breaks the reader") {
  check(tokenizer_model_seeds(), fuzz_tokenizer_model, 3000);
}

TEST_CASE("no written plan, damaged or not, breaks the reader") { check(plan_seeds(), fuzz_plan, 1000); }

TEST_CASE("no journal, damaged or not, breaks the reader") { check(journal_seeds(), fuzz_journal, 3000); }

TEST_CASE("no manifest, damaged or not, breaks the reader") { check(manifest_seeds(), fuzz_manifest, 1000); }

TEST_CASE("no covariance file, damaged or not, breaks the reader") { check(covariance_seeds(), fuzz_covariance, 1000); }

TEST_CASE("no importance file, damaged or not, breaks the reader") { check(importance_seeds(), fuzz_importance, 1000); }

TEST_CASE("no file of before GGUF, damaged or not, breaks the reader") { check(ggml_seeds(), fuzz_ggml, 1000); }

TEST_CASE("no measurement, damaged or not, breaks the reader") { check(measurement_seeds(), fuzz_measurement, 1000); }

TEST_CASE("no cluster job, damaged or not, breaks the reader") { check(cluster_job_seeds(), fuzz_cluster_job, 1000); }

TEST_CASE("no matrix of cluster jobs, damaged or not, breaks the reader") {
  check(cluster_matrix_seeds(), fuzz_cluster_matrix, 1000);
}

TEST_CASE("no marker of a cluster job, damaged or not, breaks the reader") {
  check(cluster_marker_seeds(), fuzz_cluster_marker, 1000);
}

TEST_CASE("no recipe, damaged or not, breaks the reader") { check(recipe_seeds(), fuzz_recipe, 10); }

TEST_CASE("no adapter, damaged or not, breaks the reader") { check(adapter_seeds(), fuzz_adapter, 1000); }

TEST_CASE("no map of an architecture, damaged or not, breaks what reads it and what follows it") {
  check(architecture_seeds(), fuzz_architecture, 19);
}
