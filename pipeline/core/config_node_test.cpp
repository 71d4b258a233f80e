#include "pipeline/core/config_node.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("an error shows the place, the line and a caret") {
  const ConfigText text{"a.yaml", {"version: 1", "  type: Q5_M"}};
  ConfigNode node;
  node.text = &text;
  node.position = {2, 9, 4};
  CHECK(render(error_at(node, "unknown type 'Q5_M'", "did you mean 'Q5_K'?")) ==
        "a.yaml:2:9: error: unknown type 'Q5_M'\n"
        "     2 |   type: Q5_M\n"
        "       |         ^^^^\n"
        "  help: did you mean 'Q5_K'?\n");
}

TEST_CASE("did_you_mean knows near words only") {
  const std::vector<std::string> words{"quantize", "metadata", "gguf"};
  CHECK(did_you_mean("quantise", words) == "quantize");
  CHECK(did_you_mean("Metdata", words) == "metadata");
  CHECK(did_you_mean("ggfu", words) == "gguf");
  CHECK(did_you_mean("prune", words).empty());
}
