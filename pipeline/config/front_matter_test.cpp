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

TEST_CASE("front matter that cannot be read is an error of the file") {
  ConfigTexts texts;
  const auto read = [&](std::string_view readme) { return read_front_matter(readme, "README.md", texts); };
  CHECK(read("# Title\n").value().kind == ConfigNode::Kind::kNull);
  CHECK(read("---\nlicense: mit\n---\n").value().find("license")->scalar == "mit");
  const auto damaged = read("---\nlicense: [mit\n---\n");
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().code == ExitCode::kBadInput);
  CHECK(damaged.error().where.starts_with("README.md:"));
}
