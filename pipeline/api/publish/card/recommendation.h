#pragma once
// Selects the files of a model that a card recommends.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/publish/card/card.h"

namespace ggufmill {

struct Recommendation {
  double divergence;        // greatest mean KL divergence, in nats
  std::string_view recipe;  // the file to recommend if nothing was measured
  std::string_view note;
};

// The rows of configs/cards/recommendations.tsv, from the best to the smallest. In llama.cpp's measurements of Llama 3
// 8B (tools/perplexity/README.md), the limits are just above the divergences of Q8_0 (0.0014), Q5_K_S (0.017) and
// Q4_K_S (0.043).
std::span<const Recommendation> recommendations();

// Returns for each file its recommendation, or null. Only files of the part "text" are recommended.
// - If the divergence of any was measured: for each limit the smallest file within it, other than the one that the
//   others are compared with. It is on the Pareto front: a better file of no greater size would be within the limit
//   too. A file within several limits has the first.
// - Otherwise: the files of the recipes of the table.
std::vector<const Recommendation*> recommended(std::span<const CardFile> files);

// The rule as a sentence for readers of the card; empty if no file was measured.
std::string recommendation_rule(std::span<const CardFile> files);

}  // namespace ggufmill
