#include "pipeline/config/parameters.h"

#include "tests/support/catch.h"
#include "tests/support/environment.h"

using namespace ggufmill;

namespace {

// Returns the value of `key` after substitution in "parameters: ...\nkey: ...", or the messages.
std::string substitute(const std::string& text, const std::vector<std::string>& given = {}) {
  ConfigTexts texts;
  Diagnostics errors;
  std::optional<ConfigNode> root = read_yaml(text, "a.yaml", texts, errors);
  REQUIRE(root);
  substitute_parameters(*root, given, texts, errors);
  std::string out;
  for (const Error& error : errors.errors()) out += render(error);
  return errors.empty() ? root->find("key")->scalar : out;
}

}  // namespace

TEST_CASE("a value comes from the command line, else the environment, else the default") {
  const std::string text = "parameters: {GGUFMILL_TEST_P: {default: d}}\nkey: a/${GGUFMILL_TEST_P}/b\n";
  CHECK(substitute(text) == "a/d/b");
  const Environment environment("GGUFMILL_TEST_P", "e");
  CHECK(substitute(text) == "a/e/b");
  CHECK(substitute(text, {"GGUFMILL_TEST_P=c=d"}) == "a/c=d/b");
  CHECK(substitute(text, {"GGUFMILL_TEST_P="}) == "a//b");
}

TEST_CASE("one scalar can contain several parameters, quoted or plain") {
  CHECK(substitute("parameters: {A: {default: x}, B_2: {default: 'y z'}}\nkey: '${A}${B_2}-${A}'\n") == "xy z-x");
}

TEST_CASE("an escaped parameter is literal text") {
  CHECK(substitute("key: a$${B}\n") == "a${B}");
  CHECK(substitute("key: '$$${B}$'\n") == "$${B}$");
  CHECK(substitute("key: 'blk$|{x}'\n") == "blk$|{x}");
}

TEST_CASE("a value is not parsed again: no YAML, no parameters") {
  CHECK(substitute("parameters: {A: {}}\nkey: ${A}\n", {"A=x}, {y: [${A}] # '"}) == "x}, {y: [${A}] # '");
}

TEST_CASE("substitution keeps quotes and is recorded") {
  ConfigTexts texts;
  Diagnostics errors;
  auto root = read_yaml("parameters: {A: {default: 3}}\nl: ['${A}', ${A }, x]\n", "a.yaml", texts, errors);
  CHECK_FALSE(root);  // plain ${A} is not allowed inside [ ]
  root = read_yaml("parameters: {A: {default: 3}}\nl: ['${A}', x]\n", "a.yaml", texts, errors);
  REQUIRE(root);
  Diagnostics none;
  substitute_parameters(*root, {}, texts, none);
  CHECK(none.empty());
  const ConfigNode& item = root->find("l")->items[0];
  CHECK(item.scalar == "3");
  CHECK(item.quoted);
  CHECK(item.substituted);
  CHECK_FALSE(root->find("l")->items[1].substituted);
}

TEST_CASE("the parameters block itself is not changed") {
  ConfigTexts texts;
  Diagnostics errors;
  auto root = read_yaml("parameters: {A: {doc: 'use ${B}', default: '${C}'}}\nkey: ${A}\n", "a.yaml", texts, errors);
  REQUIRE(root);
  substitute_parameters(*root, {}, texts, errors);
  CHECK(errors.empty());
  CHECK(root->find("key")->scalar == "${C}");
}

TEST_CASE("an undeclared parameter is refused even if the environment has it") {
  const Environment environment("GGUFMILL_TEST_P", "e");
  CHECK(substitute("parameters: {GGUFMILL_TEST: {}}\nkey: [1, '${GGUFMILL_TEST_P}', '${HOME}']\n") ==
        R"(a.yaml:2:10: error: parameter 'GGUFMILL_TEST_P' is not declared
     2 | key: [1, '${GGUFMILL_TEST_P}', '${HOME}']
       |          ^^^^^^^^^^^^^^^^^^^^
  help: did you mean 'GGUFMILL_TEST'?
a.yaml:2:32: error: parameter 'HOME' is not declared
     2 | key: [1, '${GGUFMILL_TEST_P}', '${HOME}']
       |                                ^^^^^^^^^
  help: declare it: parameters: {HOME: {}}
)");
}

TEST_CASE("a parameter without a value is reported once") {
  CHECK(substitute("parameters: {A: {}}\nkey: ${A}\nother: ${A}\n") == R"(a.yaml:2:6: error: parameter 'A' has no value
     2 | key: ${A}
       |      ^^^^
  help: give --param A=VALUE, set it in the environment, or declare a default
)");
}

TEST_CASE("a parameter that is not used needs no value") { CHECK(substitute("parameters: {A: {}}\nkey: x\n") == "x"); }

TEST_CASE("malformed references and names are refused") {
  CHECK(substitute("key: a${B\n") == R"(a.yaml:1:6: error: '${' is not closed
     1 | key: a${B
       |      ^^^^
  help: write ${NAME}, or $${ for a literal ${
)");
  CHECK(substitute("key: '${a-b}'\n") == R"(a.yaml:1:6: error: parameter 'a-b' is not declared
     1 | key: '${a-b}'
       |      ^^^^^^^^
  help: write ${NAME}, or $${ for a literal ${
)");
  CHECK(substitute("parameters: {a-b: {}}\nkey: x\n") == R"(a.yaml:1:14: error: 'a-b' is not a parameter name
     1 | parameters: {a-b: {}}
       |              ^^^
  help: use letters, digits and '_'
)");
}

TEST_CASE("parameters cannot be used in a key") {
  CHECK(substitute("parameters: {A: {default: x}}\nkey: {'${A}': 1}\n") ==
        R"(a.yaml:2:7: error: parameters cannot be used in a key
     2 | key: {'${A}': 1}
       |       ^^^^^^
)");
}

TEST_CASE("--param arguments are checked") {
  CHECK(substitute("parameters: {MODEL: {}}\nkey: x\n", {"MODLE=a", "MODEL", "MODEL=a", "MODEL=b"}) ==
        R"(--param: error: the pipeline file does not declare parameter 'MODLE'
       | MODLE=a
       | ^^^^^
  help: did you mean 'MODEL'?
--param: error: expected NAME=value
       | MODEL
       | ^^^^^
--param: error: parameter 'MODEL' is given twice
       | MODEL=b
       | ^^^^^
)");
}

TEST_CASE("values that would make a file very long are refused") {
  std::string references;
  for (int i = 0; i < 20; ++i) references += "${A}";
  const std::string text = "parameters: {A: {default: " + std::string(100'000, 'x') + "}}\nkey: '" + references + "'\n";
  CHECK(substitute(text).find("error: the values of parameters add more than 1.00 MiB\n") != std::string::npos);
}
