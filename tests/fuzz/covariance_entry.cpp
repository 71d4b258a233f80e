#include <cmath>

#include "pipeline/api/merge_covariance.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/covariance_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxBytes = 1 << 16;  // of files that are merged: their numbers are all read

}  // namespace

std::string fuzz_covariance(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto covariance = open_covariance(file.path(), gguf_opener());
  if (!covariance) return file.problem_of(covariance.error());
  std::vector<float> numbers;
  for (const CovarianceInput& input : covariance.value().inputs) {
    const auto length = input.covariance.packing().length();
    if (!length) return "correlations that cannot be counted";
    numbers.resize(std::min<std::uint64_t>(*length, 1 << 12));
    const Status read = input.read(input.sets() - 1, *length - numbers.size(), numbers);
    if (!read) {
      if (std::string problem = file.problem_of(read.error()); !problem.empty()) return problem;
    } else if (!std::ranges::all_of(numbers, [](float number) { return std::fabs(number) <= 1; })) {
      return "an invalid correlation";
    }
    const std::uint64_t held_out = std::min<std::uint64_t>(input.covariance.held_out * input.columns(), 1 << 12);
    numbers.resize(held_out);
    if (const Status vectors = input.read_vectors(input.experts() - 1, 0, numbers); !vectors) {
      if (std::string problem = file.problem_of(vectors.error()); !problem.empty()) return problem;
    } else if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); })) {
      return "a held-out vector that is not finite";
    }
  }
  if (bytes.size() > kMaxBytes) return {};
  const Status checked = check_numbers(covariance.value());
  if (!checked) return file.problem_of(checked.error());
  const TempDir folder;
  const std::string sum = folder.file("sum.gguf");
  const auto merged = merge_covariance({{covariance.value()}, {covariance.value()}}, sum, false);
  if (!merged) return merged.error().code == ExitCode::kBadInput ? "" : "not a clear error: " + render(merged.error());
  const auto again = open_covariance(sum, gguf_opener());
  if (!again) return "a sum that cannot be read: " + render(again.error());
  const Status read = check_numbers(again.value());
  return read ? "" : "a sum with bad numbers: " + render(read.error());
}

std::vector<std::string> covariance_seeds() {
  const RandomInputs shared{{"blk.0.attn_q.weight", "blk.0.attn_k.weight"}, 6};
  GgufBuilder big = gguf_covariance({shared}, 0);
  big.big_endian = true;
  return {gguf_covariance({shared, {{"blk.0.ffn_down_exps.weight"}, 5, {9, 0, 4}}}, 0).build(),
          gguf_covariance({{{"blk.0.ffn_gate_exps.weight"}, 5, {9, 0, 4}, false, 0, 3}}, 0).build(),
          gguf_covariance({shared, {{"blk.0.ffn_up_exps.weight"}, 5, {9, 0, 4}, true}}, 4).build(),
          big.build(),
          gguf_importance().build(),
          "GGUF",
          ""};
}

}  // namespace ggufmill
