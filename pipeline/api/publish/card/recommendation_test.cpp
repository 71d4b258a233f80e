#include "pipeline/api/publish/card/recommendation.h"

#include <limits>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

CardFile file(std::string recipe, std::uint64_t bytes, double divergence) {
  return {.recipe = std::move(recipe), .bytes = bytes, .quality = CardQuality{.divergence = divergence}};
}

// Returns "RECIPE: NOTE" of every recommended file.
std::vector<std::string> notes(const std::vector<CardFile>& files) {
  std::vector<std::string> out;
  const auto found = recommended(files);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (found[i] != nullptr) out.push_back(files[i].recipe + ": " + std::string(found[i]->note));
  return out;
}

using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("measured files: the smallest within each limit is recommended") {
  CHECK(notes({file("Q8_0", 850, 0.0014), file("Q6_K", 660, 0.0055), file("Q5_K_M", 570, 0.0108),
               file("Q5_K_S", 550, 0.0166), file("Q5_0", 556, 0.0222), file("Q4_K_M", 490, 0.0282),
               file("IQ4_XS", 443, 0.0363), file("Q4_0", 460, 0.0719), file("Q2_K", 310, 0.33)}) ==
        Notes{"Q8_0: hardly any loss", "Q5_K_S: high quality", "IQ4_XS: good balance of size and quality"});
}

TEST_CASE("a file within several limits has the best recommendation") {
  CHECK(notes({file("Q8_0", 850, 0.001), file("Q4_K_M", 490, 0.0015)}) == Notes{"Q4_K_M: hardly any loss"});
}

TEST_CASE("among files of the same size the better one is recommended") {
  CHECK(notes({file("A", 100, 0.04), file("B", 100, 0.03)}) == Notes{"B: good balance of size and quality"});
}

TEST_CASE("measured files outside of all limits are not recommended, whatever their recipe") {
  CHECK(notes({file("Q4_K_M", 490, 0.2)}).empty());
}

TEST_CASE("the base file, other parts and numbers that are not finite are not recommended") {
  CardFile base = file("BF16", 1600, 0);
  base.is_base = true;
  CardFile draft = file("Q8_0", 10, 0);
  draft.part = "draft";
  CHECK(notes({base, draft, file("Q5_K_M", 570, std::numeric_limits<double>::quiet_NaN()), file("Q8_0", 850, 0.001)}) ==
        Notes{"Q8_0: hardly any loss"});
}

TEST_CASE("files that were not measured are recommended by their recipe") {
  CHECK(
      notes({{.recipe = "Q2_K"}, {.recipe = "Q4_K_M"}, {.recipe = "Q8_0"}, {.recipe = "Q8_0", .part = "projector"}}) ==
      Notes{"Q4_K_M: good balance of size and quality", "Q8_0: hardly any loss"});
}

TEST_CASE("the rule is stated for measured files") {
  CHECK(
      recommendation_rule(std::vector<CardFile>{file("A", 1, 0.1)}) ==
      "The notes name the smallest file whose mean divergence is at most 0.002 (hardly any loss), 0.02 (high quality) "
      "and 0.05 (good balance of size and quality).");
  CHECK(recommendation_rule(std::vector<CardFile>{{.recipe = "A"}}).empty());
}
