#include "pipeline/config/front_matter.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("front matter keeps its line numbers") {
  CHECK(front_matter("---\nlicense: mit\n---\n# Title\n") == "\nlicense: mit\n");
  CHECK(front_matter("---\r\nlicense: mit\r\n---\r\n") == "\nlicense: mit\n");
}

TEST_CASE("front matter without an end goes to the end of the file") {
  CHECK(front_matter("---\nlicense: mit") == "\nlicense: mit\n");
}

TEST_CASE("a card may have no front matter") {
  CHECK(front_matter("").empty());
  CHECK(front_matter("# Title\n---\na: b\n---\n").empty());
}

TEST_CASE("front matter that is often wrong is repaired") {
  CHECK(front_matter("---\nlanguage:\n- no\n\t- en\n---\n") == "\nlanguage:\n- \"no\"\n  - en\n");
}
