#include "pipeline/api/publish/presets/go_template.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// The texts that a template of Ollama renders; conversations that it does not render are refused.
std::vector<RenderedConversation> rendered_by(const GoTemplate& made) {
  std::vector<RenderedConversation> texts;
  for (const TriedConversation& each : tried_conversations()) {
    const auto known = std::ranges::find(made.rendered, each.name, [](const auto& text) { return text.first; });
    if (known == made.rendered.end())
      texts.push_back({"", "no tools"});
    else
      texts.push_back({known->second, ""});
  }
  return texts;
}

}  // namespace

TEST_CASE("JSON in a text is compared by its values") {
  CHECK(with_plain_json("a {\"b\": 1, \"a\": [1, 2]} c") == "a {\"a\":[1,2],\"b\":1} c");
  CHECK(with_plain_json("[{\"b\": 1}, {\"a\": \"}\\\"\"}] [INST]") == "[{\"b\":1},{\"a\":\"}\\\"\"}] [INST]");
  CHECK(with_plain_json("{\"name\": <name>} { [") == "{\"name\": <name>} { [");
  CHECK(with_plain_json(std::string(50'000, '{')).size() == 50'000);
}

TEST_CASE("each template of Ollama is found by what it renders") {
  CHECK(go_templates().size() >= 10);
  for (const GoTemplate& each : go_templates()) {
    CAPTURE(each.name);
    CHECK(each.rendered.size() == (each.has_tools ? tried_conversations().size() : 4));
    CHECK(!each.stops.empty());
    CHECK(each.text.find("\"\"\"") == each.text.npos);
    const ChosenTemplate chosen = matching_template(rendered_by(each));
    REQUIRE(chosen.found);
    CHECK(chosen.found->name == each.name);
    CHECK((chosen.note.find("with tools") != chosen.note.npos) == each.has_tools);
  }
}

TEST_CASE("a template of Ollama is none if one conversation has another text") {
  auto texts = rendered_by(go_templates().front());
  SECTION("of all") {
    for (RenderedConversation& each : texts) each.text += "x";
  }
  SECTION("of one") { texts[1].text.insert(0, " "); }
  const ChosenTemplate chosen = matching_template(texts);
  CHECK(chosen.found == nullptr);
  CHECK(chosen.note.find("renders the same text") != chosen.note.npos);
}

TEST_CASE("tools that a model knows, and its template of Ollama does not, are in the note") {
  const auto chatml = std::ranges::find(go_templates(), "chatml", &GoTemplate::name);
  REQUIRE(chatml != go_templates().end());
  auto texts = rendered_by(*chatml);
  for (RenderedConversation& each : texts)
    if (!each.error.empty()) each = {"<tools>", ""};
  const ChosenTemplate chosen = matching_template(texts);
  REQUIRE(chosen.found == &*chatml);
  CHECK(chosen.note.find("Ollama offers none") != chosen.note.npos);
}

TEST_CASE("a model without a chat template has no template of Ollama") {
  const auto chosen = choose_template("a.gguf", {});
  REQUIRE(chosen);
  CHECK(chosen.value().found == nullptr);
  CHECK(chosen.value().note == "the model has no chat template");
}
