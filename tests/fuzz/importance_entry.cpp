#include <algorithm>

#include "stages/gguf/gguf.h"
#include "stages/importance/importance_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/importance_files.h"

namespace ggufmill {

std::string fuzz_importance(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto importance = open_importance(file.path(), gguf_opener());
  if (!importance) return file.problem_of(importance.error());
  if (importance.value().entries.empty()) return "no entry, and no error";
  std::vector<float> weights;
  for (const ImportanceEntry& entry : importance.value().entries) {
    weights.resize(std::min<std::uint64_t>(entry.size(), 1 << 12));
    const Status read = entry.weights(entry.size() - weights.size(), weights);
    if (!read) {
      if (std::string problem = file.problem_of(read.error()); !problem.empty()) return problem;
    } else if (!std::ranges::all_of(weights, [](float weight) { return weight >= 0; })) {
      return "a weight that is none";
    }
  }
  return {};
}

std::vector<std::string> importance_seeds() {
  const std::string one = legacy_entry("blk.0.ffn_down.weight", 2, {1, 2, 3, 4});
  GgufBuilder file = gguf_importance();
  add_entry(file, "blk.0.ffn_down.weight", {1, 2, 3, 4}, {1});
  add_entry(file, "blk.1.ffn_down_exps.weight", {1, 2, 3, 4, 5, 6}, {1, 0});
  return {legacy_importance({one}),
          legacy_importance({one, legacy_entry("output.weight", 1, {5})}, legacy_tail(3, "a.txt")),
          file.build(),
          legacy_importance({}),
          "GGUF",
          ""};
}

}  // namespace ggufmill
