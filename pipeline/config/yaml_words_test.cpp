#include "pipeline/config/yaml_words.h"

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/pattern.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

std::string read_back(const std::string& yaml) {
  Diagnostics errors;
  const auto document = read_document(yaml, "a.yaml", errors);
  for (const Error& error : errors.errors()) FAIL_CHECK(render(error));
  return document ? document->root.scalar : std::string();
}

}  // namespace

TEST_CASE("plain text is put between single quotes") {
  CHECK(yaml_quoted("a: b") == "'a: b'");
  CHECK(yaml_quoted("it's") == "'it''s'");
  CHECK(yaml_quoted("") == "''");
}

TEST_CASE("text with control characters is put between double quotes") {
  CHECK(yaml_quoted("a\n\"\\") == R"("a\u000a\"\\")");
}

TEST_CASE("quoted text is read back unchanged") {
  for (const std::string text : {"plain", "it's", "a # b", "- x", "{a: b}", "\x01\x1f\x7f", "tab\there", "two\nlines",
                                 "\"", "\\", "\\n", "Grüße", "null", "true", "12", " led", "trailed "}) {
    CAPTURE(text);
    CHECK(read_back(yaml_quoted(text)) == text);
  }
}

TEST_CASE("the start of a parameter is kept as text") { CHECK(yaml_quoted("${HOME}/$x") == "'$${HOME}/$x'"); }

TEST_CASE("a scalar is quoted if it could be read as something else than its text") {
  for (const std::string plain : {"apache-2.0", "org/Model_1.5", "en", "text-generation"})
    CHECK(yaml_scalar(plain) == plain);
  for (const std::string quoted : {"no", "Yes", "null", "7", "1.0", "", "a: b", "a #b", "-", "---", "https://a/b", "~"})
    CHECK(yaml_scalar(quoted) == "'" + quoted + "'");
  CHECK(yaml_scalar("it's") == "'it''s'");
  CHECK(yaml_scalar("a\n---\nb") == R"("a\u000a---\u000ab")");
  CHECK(yaml_scalar("${HOME}") == "'${HOME}'");
}

TEST_CASE("a literal matches itself and nothing else") {
  const std::string text = "blk.0.(a|b)[c]{2}^$*+?\\d";
  const Pattern pattern = Pattern::compile(regex_literal(text)).value();
  CHECK(pattern.matches(text).value());
  CHECK(pattern.matches("x" + text + "y").value());
  CHECK_FALSE(pattern.matches("blk00.(a|b)[c]{2}^$*+?\\d").value());
}
