#include "pipeline/config/yaml_reader.h"

#include <fmt/format.h>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// Formats a tree as text, such as {a: 1, b: [x, "y"]}; quoted scalars in quotes, null as ~.
std::string show(const ConfigNode& node) {
  std::string out;
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "~";
    case ConfigNode::Kind::kScalar:
      return node.quoted ? "\"" + node.scalar + "\"" : node.scalar;
    case ConfigNode::Kind::kList:
      for (const ConfigNode& item : node.items) out += (out.empty() ? "" : ", ") + show(item);
      return "[" + out + "]";
    case ConfigNode::Kind::kMap:
      for (const ConfigNode::Entry& entry : node.entries)
        out += (out.empty() ? "" : ", ") + entry.key + ": " + show(entry.value);
      return "{" + out + "}";
  }
  return out;
}

// Returns the tree as text, or the error messages.
std::string read(std::string_view text, decltype(read_yaml)* reader = read_yaml) {
  ConfigTexts texts;
  Diagnostics errors;
  const std::optional<ConfigNode> node = reader(text, "a.yaml", texts, errors);
  if (node && errors.empty()) return show(*node);
  std::string out;
  for (const Error& error : errors.errors()) out += render(error);
  return out;
}

std::string place(const ConfigNode& node) {
  return std::to_string(node.position.line) + ":" + std::to_string(node.position.column) + "+" +
         std::to_string(node.position.length);
}

}  // namespace

TEST_CASE("block and flow styles give the same tree") {
  CHECK(read("a: 1\nb:\n  - x\n  - 'y'\nc: {d: e}\n") == "{a: 1, b: [x, \"y\"], c: {d: e}}");
  CHECK(read("{a: 1, b: [x, 'y'], c: {d: e}}") == "{a: 1, b: [x, \"y\"], c: {d: e}}");
}

TEST_CASE("scalars stay text") {
  CHECK(read("[yes, 0x10, 1.50, 007, -, .inf, 2026-01-01]") == "[yes, 0x10, 1.50, 007, -, .inf, 2026-01-01]");
  CHECK(read("[null, ~, , '', \"null\"]") == "[~, ~, ~, \"\", \"null\"]");
}

TEST_CASE("quoted and block scalars are unescaped") {
  CHECK(read(R"(['it''s', "tab\t", "\u00fc", 'blk\.\d'])") == "[\"it's\", \"tab\t\", \"\xc3\xbc\", \"blk\\.\\d\"]");
  CHECK(read("a: |\n  x\n  y\n") == "{a: \"x\ny\n\"}");
}

TEST_CASE("a document may have a marker, comments, a byte order mark and CR LF") {
  CHECK(read("\xef\xbb\xbf# c\r\n---\r\na: 1 # x\r\n...\r\n") == "{a: 1}");
}

TEST_CASE("an empty text is null") {
  CHECK(read("") == "~");
  CHECK(read("# only a comment\n") == "~");
  CHECK(read("null") == "~");
}

TEST_CASE("every node has its position and length") {
  ConfigTexts texts;
  Diagnostics errors;
  const auto root = read_yaml(
      "\xc3\xa9: val\nkey: {p: 'a''b', \"q\": \"x\\\"y\"}\nl:\n  - |\n    t\n  -\nn: ~\ne:\nnull2: many words\n  "
      "more\n",
      "a.yaml", texts, errors);
  REQUIRE(root);
  CHECK(place(*root) == "1:1+2");
  CHECK(place(root->entries[0].value) == "1:5+3");
  CHECK(root->entries[1].position.line == 2);
  CHECK(root->entries[1].position.length == 3);
  const ConfigNode& flow = root->entries[1].value;
  CHECK(place(flow) == "2:6+1");
  CHECK(place(flow.entries[0].value) == "2:10+6");
  CHECK(flow.entries[1].position.column == 18);
  CHECK(flow.entries[1].position.length == 3);
  CHECK(place(flow.entries[1].value) == "2:23+6");
  CHECK(place(root->find("l")->items[0]) == "4:5+1");
  CHECK(place(root->find("l")->items[1]) == "6:3+1");
  CHECK(place(*root->find("n")) == "7:4+1");
  CHECK(place(*root->find("e")) == "8:1+1");
  CHECK(place(*root->find("null2")) == "9:8+10");
}

TEST_CASE("an empty list item is placed at its dash") {
  ConfigTexts texts;
  Diagnostics errors;
  const auto root = read_yaml("a:\n  -\n\n  - - x\n    -\n", "a.yaml", texts, errors);
  REQUIRE(root);
  CHECK(place(root->entries[0].value.items[0]) == "2:3+1");
  CHECK(place(root->entries[0].value.items[1].items[1]) == "5:5+1");
}

TEST_CASE("duplicate keys are reported together, and the first one wins") {
  ConfigTexts texts;
  Diagnostics errors;
  const auto root = read_yaml("a: 1\nb: {c: 1, c: 2}\n\"a\": [3]\n", "a.yaml", texts, errors);
  REQUIRE(root);
  CHECK(show(*root) == "{a: 1, b: {c: 1}}");
  REQUIRE(errors.errors().size() == 2);
  CHECK(render(errors.errors()[1]) == R"(a.yaml:3:1: error: duplicate key 'a'
     3 | "a": [3]
       | ^^^
  help: it is already in line 1
)");
}

TEST_CASE("anchors, aliases, merge keys, and tags are reported together") {
  CHECK(read("a: &x {k: 1}\nb: *x\nc: {<<: *x}\nd: !!int 3\ne: ! f\n") ==
        R"(a.yaml:1:4: error: anchors (&) are not supported
     1 | a: &x {k: 1}
       |    ^
  help: write out the value where it is used
a.yaml:2:4: error: aliases (*) are not supported
     2 | b: *x
       |    ^
  help: write the value out, or put text that begins with * in quotes
a.yaml:3:5: error: merge keys (<<) are not supported
     3 | c: {<<: *x}
       |     ^^
  help: write the keys out
a.yaml:3:9: error: aliases (*) are not supported
     3 | c: {<<: *x}
       |         ^
  help: write the value out, or put text that begins with * in quotes
a.yaml:4:4: error: tags (!) are not supported
     4 | d: !!int 3
       |    ^
  help: put text that begins with ! in quotes
a.yaml:5:4: error: tags (!) are not supported
     5 | e: ! f
       |    ^
  help: put text that begins with ! in quotes
)");
}

TEST_CASE("nested aliases are refused immediately") {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i)
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" +
            std::to_string(i - 1) + "]\n";
  CHECK(read(bomb).find("aliases (*) are not supported") != std::string::npos);
}

TEST_CASE("invalid YAML has one message with its position") {
  struct Case {
    const char* text;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {"a: 1\n---\nb: 2\n",
       "a.yaml:2:1: error: a second document begins here\n"
       "     2 | ---\n"
       "       | ^^^\n"
       "  help: a file must contain exactly one\n"},
      {"{a: 1} x\n",
       "a.yaml:1:8: error: unexpected text after the end of the document\n     1 | {a: 1} x\n"
       "       |        ^\n"},
      {"%YAML 1.1\n---\na: 1\n",
       "a.yaml:1:1: error: directives (%) are not supported\n     1 | %YAML 1.1\n       | ^\n"
       "  help: remove the line: files are read as YAML 1.2\n"},
      {"a:\n\t- b\n",
       "a.yaml:2:1: error: tabs cannot be used for indentation\n"
       "     2 |  - b\n"
       "       | ^\n"
       "  help: indent with spaces\n"},
      {"a: b: c\n",
       "a.yaml:1:5: error: a ':' is not allowed here\n     1 | a: b: c\n       |     ^\n"
       "  help: put text that contains ': ' in quotes; check the indentation\n"},
      {"a: {b: ${X}}\n",
       "a.yaml:1:9: error: expected ',' or '}' here\n     1 | a: {b: ${X}}\n       |         ^\n"
       "  help: put text that contains any of { } [ ] , : # in quotes, such as '${NAME}'\n"},
      {"a: [1, 2\nb: 3\n",
       "a.yaml:2:2: error: expected ',' or ']' here\n     2 | b: 3\n       |  ^\n"
       "  help: close the list with ]; text that contains any of { } [ ] , : # must be in quotes\n"},
      {"a: [1, 2\n",
       "a.yaml:1:9: error: expected ',' or ']' here\n     1 | a: [1, 2\n       |         ^\n"
       "  help: close the list with ]; text that contains any of { } [ ] , : # must be in quotes\n"},
      {"a: }\n",
       "a.yaml:1:4: error: this closes no open bracket\n"
       "     1 | a: }\n"
       "       |    ^\n"
       "  help: put text that contains any of { } [ ] , : # in quotes, such as '${NAME}'\n"},
      {"a:\n  b: 1\n c: 2\n",
       "a.yaml:3:2: error: expected a key here\n"
       "     3 |  c: 2\n"
       "       |  ^\n"
       "  help: the keys of a map and the dashes of a list must start in the same column\n"},
      {"a: 'x\nb: c\n", "a.yaml:1:4: error: the quote is not closed\n     1 | a: 'x\n       |    ^\n"},
      {"a: @x\n",
       "a.yaml:1:4: error: unquoted text cannot begin with this character\n"
       "     1 | a: @x\n"
       "       |    ^\n"
       "  help: put it in quotes\n"},
      {"a: \"blk\\.0\"\n",
       "a.yaml:1:8: error: unknown escape in double quotes\n     1 | a: \"blk\\.0\"\n"
       "       |        ^^\n  help: write \\\\ for a backslash, or use single quotes\n"},
      {"a: *x\n",
       "a.yaml:1:4: error: aliases (*) are not supported\n     1 | a: *x\n       |    ^\n"
       "  help: put text that begins with * in quotes\n"},
      {"? [a]\n: b\n",
       "a.yaml:1:3: error: the '[' is not closed, or is in place of a key\n"
       "     1 | ? [a]\n"
       "       |   ^\n"
       "  help: put text that contains any of { } [ ] in quotes, such as '${NAME}'\n"},
      {"{null: 1}\n",
       "a.yaml:1:2: error: a key must be a string\n     1 | {null: 1}\n       |  ^^^^\n  help: put it in quotes\n"},
      {"a: \xff\n",
       "a.yaml:1:4: error: byte 0xff is not UTF-8\n     1 | a: ?\n       |    ^\n"
       "  help: save the file as UTF-8\n"},
      {"a: x\x1b[0m\n",
       "a.yaml:1:5: error: control character 0x1b\n     1 | a: x?[0m\n       |     ^\n"
       "  help: write it as an escape in double quotes\n"},
      {"a: b\rc: d\n",
       "a.yaml:1:5: error: control character 0x0d\n     1 | a: b?c: d\n       |     ^\n"
       "  help: write it as an escape in double quotes\n"},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(read(c.text) == c.expected);
  }
}

TEST_CASE("more than 1 MiB is refused, 1 MiB is read") {
  CHECK(read(std::string((1 << 20) + 1, ' ')) == "a.yaml: error: more than 1 MiB of YAML\n");
  CHECK(read(std::string((1 << 20) - 1, ' ') + "x") == "x");
}

TEST_CASE("64 levels are read, 65 are refused") {
  CHECK(read(std::string(64, '[') + std::string(64, ']')).size() == 128);
  CHECK(read(std::string(65, '[') + std::string(65, ']')).substr(0, 53) ==
        "a.yaml:1:65: error: nested more than 64 levels deep\n ");
}

TEST_CASE("100,000 values are read, more are refused") {
  std::string text = "[";
  for (int i = 1; i < 100000; ++i) text += "a,";
  CHECK(read(text + "]").size() > 200000);
  CHECK(read(text + "a]").find("error: more than 100000 values\n") != std::string::npos);
}

TEST_CASE("unclosed brackets are refused before they use much memory") {
  CHECK(read("a: " + std::string(1 << 19, '['))
            .find("a.yaml:1:4: error: a value here has too many brackets, commas, colons, and quotes\n") == 0);
}

TEST_CASE("part of an argument is read at its own position") {
  const ConfigText shown{"--set", {"a.b={c: [1}"}, false};
  Diagnostics errors;
  CHECK_FALSE(read_yaml_value(4, shown, errors));
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors()[0].where == "--set");
  CHECK(errors.errors()[0].detail == "     | a.b={c: [1}\n     |           ^");
}

TEST_CASE("foreign YAML may have aliases, equal keys, and string tags") {
  const auto foreign = [](std::string_view text) { return read(text, read_foreign_yaml); };
  CHECK(foreign("a: &x [1, &y 2]\nb: *x\nc: *y\n") == "{a: [1, 2], b: [1, 2], c: 2}");
  CHECK(foreign("a: 1\nb: 2\na: 3\n") == "{a: 3, b: 2}");
  CHECK(foreign("a: !!str 7\n") == "{a: \"7\"}");
  CHECK(foreign("a: !!binary eA==\n").find("tags (!) are not supported") != std::string::npos);
  CHECK(foreign("a: &x [*x]\n").find("the alias is inside the value that it refers to") != std::string::npos);
}

TEST_CASE("aliases cannot make a text grow without end") {
  std::string doubled = "a0: &a0 [x, x]\n", deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 70; ++i) {
    doubled += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
    deep += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  }
  CHECK(read(doubled, read_foreign_yaml).find("more than 100000 values") != std::string::npos);
  std::string long_text = "a: &a " + std::string(100000, 'x') + "\nb:\n";
  for (int i = 0; i < 1000; ++i) long_text += "- *a\n";
  CHECK(read(long_text, read_foreign_yaml).find("more than 100000 values") != std::string::npos);
  CHECK(read(deep, read_foreign_yaml).find("nested more than 64 levels deep") != std::string::npos);
}
