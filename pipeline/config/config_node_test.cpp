#include "pipeline/config/config_node.h"

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

TEST_CASE("the caret counts characters, and tabs are one column") {
  const ConfigText text{"a.yaml", {"k\xc3\xa9y:\t'\xc3\xbc' x"}};
  CHECK(error_at(&text, {1, 7, 4}, "x").detail == "   1 | k\xc3\xa9y: '\xc3\xbc' x\n     |      ^^^");
}

TEST_CASE("only the part of a long line around the caret is shown") {
  const ConfigText text{"a.yaml", {std::string(1000, 'a').append("b").append(1000, 'a')}};
  const std::string detail = error_at(&text, {1, 1001, 1}, "x").detail;
  CHECK(detail.size() < 300);
  CHECK(detail == "   1 | ..." + std::string(80, 'a') + "b" + std::string(79, 'a') + "...\n     |    " +
                      std::string(80, ' ') + "^");
}

TEST_CASE("control characters of a line are not sent to the terminal") {
  const ConfigText text{"--set", {"a=\x1b[31m"}, false};
  CHECK(render(error_at(&text, {1, 3, 1}, "x")) == "--set: error: x\n       | a=?[31m\n       |   ^\n");
}

TEST_CASE("a position after the end of a line is marked there") {
  const ConfigText text{"a.yaml", {"abc"}};
  CHECK(error_at(&text, {1, 9, 5}, "x").detail == "   1 | abc\n     |    ^");
}
