#include "pipeline/api/publish/card/base_card.h"

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

BaseCard read(std::string_view text) {
  Result<BaseCard> card = read_base_card(text, "README.md");
  if (!card) FAIL(render(card.error()));
  return card.value();
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("the keys of a base model's card are read") {
  const BaseCard card = read(
      "---\nlicense: other\nlicense_name: gemma\nlicense_link: LICENSE\nlanguage:\n- en\n- no\n"
      "pipeline_tag: text-generation\nlibrary_name: transformers\ntags: [a, 'b: c']\nbase_model: x/y\n"
      "widget:\n- text: hello\nmodel-index: {}\n---\n# Text\n");
  CHECK(card.license == Texts{"other"});
  CHECK(card.license_name == "gemma");
  CHECK(card.license_link == "LICENSE");
  CHECK(card.language == Texts{"en", "no"});
  CHECK(card.pipeline_tag == "text-generation");
  CHECK(card.library_name == "transformers");
  CHECK(card.tags == Texts{"a", "b: c"});
  CHECK(card.base_model == Texts{"x/y"});
  CHECK(card.warnings.empty());
}

TEST_CASE("a base model may have several licenses, and one language that is not a list") {
  const BaseCard card = read("---\nlicense: [mit, apache-2.0]\nlanguage: en\n---\n");
  CHECK(card.license == Texts{"mit", "apache-2.0"});
  CHECK(card.language == Texts{"en"});
}

TEST_CASE("a base model's card may have no front matter, or an empty one") {
  for (const std::string text : {"", "# Model\n", "---\n---\n", "---\nlicense:\ntags: []\n---\n"}) {
    CAPTURE(text);
    const BaseCard card = read(text);
    CHECK(card.license.empty());
    CHECK(card.tags.empty());
    CHECK(card.warnings.empty());
  }
}

TEST_CASE("values of a wrong kind are ignored with a warning") {
  const BaseCard card = read("---\nlicense: {id: mit}\npipeline_tag: [a]\ntags: [a, {b: c}, [d]]\nlanguage: en\n---\n");
  CHECK(card.license.empty());
  CHECK(card.pipeline_tag.empty());
  CHECK(card.tags == Texts{"a"});
  CHECK(card.language == Texts{"en"});
  CHECK(card.warnings == Texts{"README.md:2:10: 'license' is a map, not text or a list; ignored",
                               "README.md:3:15: 'pipeline_tag' is a list, not text; ignored",
                               "README.md:4:11: an item of 'tags' is a map, not text; ignored",
                               "README.md:4:19: an item of 'tags' is a list, not text; ignored"});
}

TEST_CASE("front matter that is not a map is ignored with a warning") {
  CHECK(read("---\n- a\n---\n").warnings ==
        Texts{"README.md:2:1: the text between the --- lines is not a map; ignored"});
}

TEST_CASE("front matter that is not YAML is an error") {
  const Result<BaseCard> card = read_base_card("---\na: [b\n---\n", "README.md");
  REQUIRE_FALSE(card);
  CHECK(card.error().code == ExitCode::kBadInput);
  CHECK(card.error().where.starts_with("README.md:"));
}
