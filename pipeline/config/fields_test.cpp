#include "pipeline/config/fields.h"

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

ConfigNode scalar(std::string text, bool quoted = false) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = std::move(text);
  node.quoted = quoted;
  return node;
}

ConfigNode list(std::vector<ConfigNode> items) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kList;
  node.items = std::move(items);
  return node;
}

ConfigNode map(std::vector<ConfigNode::Entry> entries) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kMap;
  node.entries = std::move(entries);
  return node;
}

// Returns the messages of a lint, one per line, with the help text after " | ".
std::string faults(const ConfigNode& node, const FieldSpec& spec) {
  Diagnostics out;
  lint(node, spec, out);
  std::string text;
  for (const Error& error : out.errors()) text += error.what + (error.help.empty() ? "" : " | " + error.help) + "\n";
  return text;
}

struct Case {
  FieldSpec spec;
  ConfigNode node;
  std::string expected;
};

FieldSpec of(FieldKind kind) { return {.kind = kind}; }

std::string pattern_fault(const ConfigText& text, ConfigNode node) {
  node.kind = ConfigNode::Kind::kScalar;
  node.text = &text;
  const Result<Pattern> pattern = to_pattern(node);
  return pattern ? "" : render(pattern.error());
}

}  // namespace

TEST_CASE("each kind of scalar has its message") {
  const FieldSpec choice{.kind = FieldKind::kEnum, .choices = {"error", "unweighted"}};
  const FieldSpec type_or_keep{.kind = FieldKind::kTypeName, .choices = {"keep"}};
  const FieldSpec part{.kind = FieldKind::kNumber, .maximum = 1};
  const FieldSpec memory{.kind = FieldKind::kBytes, .minimum = 1 << 20};
  const FieldSpec cores{.kind = FieldKind::kInteger, .minimum = 1, .maximum = 1024};
  const FieldSpec any{.kind = FieldKind::kInteger, .minimum = -10};
  const std::vector<Case> cases = {
      {of(FieldKind::kString), scalar("3"), ""},
      {of(FieldKind::kString), scalar("", true), ""},
      {of(FieldKind::kPath), scalar("a b"), ""},
      {of(FieldKind::kPath), scalar("", true), "a path cannot be empty\n"},
      {of(FieldKind::kPath), scalar(std::string("a\0b", 3), true), "a path cannot contain a NUL character\n"},
      {of(FieldKind::kBool), scalar("true"), ""},
      {of(FieldKind::kBool), scalar("yes"), "'yes' is not true or false | write true\n"},
      {of(FieldKind::kBool), scalar("Off"), "'Off' is not true or false | write false\n"},
      {of(FieldKind::kBool), scalar("maybe"), "'maybe' is not true or false\n"},
      {of(FieldKind::kBool), scalar("true", true),
       "expected true or false, found the quoted string 'true' | remove the quotes\n"},
      {of(FieldKind::kInteger), scalar("12"), ""},
      {of(FieldKind::kInteger), scalar("12", true),
       "expected an integer, found the quoted string '12' | remove the quotes\n"},
      {of(FieldKind::kInteger), scalar("-1"), "'-1' is not 0 or more\n"},
      {of(FieldKind::kInteger), scalar("1.5"), "'1.5' is not an integer\n"},
      {of(FieldKind::kInteger), scalar("0x10"), "'0x10' is not an integer\n"},
      {of(FieldKind::kInteger), scalar("1_000"), "'1_000' is not an integer\n"},
      {of(FieldKind::kInteger), scalar("99999999999999999999"), "'99999999999999999999' does not fit into 64 bits\n"},
      {any, scalar("-3"), ""},
      {any, scalar("-11"), "'-11' is not an integer of at least -10\n"},
      {cores, scalar("1024"), ""},
      {cores, scalar("1025"), "'1025' is not an integer from 1 to 1024\n"},
      {part, scalar("0.25"), ""},
      {part, scalar("1e-3"), ""},
      {part, scalar("1.5"), "'1.5' is not a number from 0 to 1\n"},
      {part, scalar("nan"), "'nan' is not a number\n"},
      {part, scalar("half"), "'half' is not a number\n"},
      {memory, scalar("1MiB"), ""},
      {memory, scalar("2GiB", true), ""},
      {memory, scalar("1023KiB"), "'1023KiB' is not a size of at least 1MiB\n"},
      {memory, scalar("12 MiB"), "'12 MiB' is not a size | write a number and a unit: 512MiB, 20G, 1.5GiB\n"},
      {memory, scalar("99999999T"), "'99999999T' does not fit into 64 bits\n"},
      {of(FieldKind::kRegex), scalar("a[bc]"), ""},
      {of(FieldKind::kRegex), scalar("a[b"),
       "bad regular expression 'a[b': unmatched [ or [^ in character class declaration at character 4 | escape "
       "special characters with a backslash: 'a\\.b\\('\n"},
      {of(FieldKind::kTypeName), scalar("q4_k"), ""},
      {of(FieldKind::kTypeName), scalar("Q5_M"),
       "unknown quantization type 'Q5_M' | did you mean 'Q5_K'? `ggufmill types` lists them\n"},
      {of(FieldKind::kTypeName), scalar("IQ4_SX"),
       "unknown quantization type 'IQ4_SX' | did you mean 'IQ4_XS'? `ggufmill types` lists them\n"},
      {of(FieldKind::kEncoderName), scalar("search"), ""},
      {of(FieldKind::kEncoderName), scalar("serch"),
       "unknown encoder 'serch' | did you mean 'search'? encoders here: reference, search, covariance; kernel modules "
       "can add "
       "others\n"},
      {of(FieldKind::kTypeName), scalar("half"), "unknown quantization type 'half' | `ggufmill types` lists them\n"},
      {type_or_keep, scalar("keep"), ""},
      {type_or_keep, scalar("Q6_K"), ""},
      {type_or_keep, scalar("kep"),
       "unknown quantization type 'kep' | did you mean 'keep'? `ggufmill types` lists them\n"},
      {choice, scalar("error"), ""},
      {choice, scalar("unweigthed"), "'unweigthed' is not one of 'error', 'unweighted' | did you mean 'unweighted'?\n"},
      {choice, scalar("skip"), "'skip' is not one of 'error', 'unweighted'\n"},
  };
  for (const Case& c : cases) {
    INFO(c.node.scalar);
    CHECK(faults(c.node, c.spec) == c.expected);
  }
}

TEST_CASE("a parameter in quotes may be a number") {
  ConfigNode node = scalar("12", true);
  node.substituted = true;
  CHECK(faults(node, of(FieldKind::kInteger)).empty());
}

TEST_CASE("the error for a wrong kind of node names the expected one") {
  const FieldSpec texts{.kind = FieldKind::kList, .example = "[a, b]", .item = {{}}};
  CHECK(faults(scalar("x"), texts) == "expected a list, found 'x' | for example [a, b]\n");
  CHECK(faults(map({}), texts) == "expected a list, found a map | for example [a, b]\n");
  CHECK(faults(ConfigNode{}, texts) == "expected a list, found nothing | for example [a, b]\n");
  CHECK(faults(list({}), of(FieldKind::kPath)) == "expected a path, found a list\n");
}

TEST_CASE("a value of any kind is not checked") {
  CHECK(faults(ConfigNode{}, of(FieldKind::kAny)).empty());
  CHECK(faults(list({map({{"a", {}, {}}})}), of(FieldKind::kAny)).empty());
}

TEST_CASE("unknown and missing keys of a map are reported") {
  const FieldSpec path{.name = "path", .kind = FieldKind::kPath, .required = true, .example = "a.gguf"};
  const FieldSpec size{.name = "size", .kind = FieldKind::kBytes, .required = true};
  const FieldSpec spec{.kind = FieldKind::kMap, .fields = {path, size}};
  CHECK(faults(map({{"path", {}, scalar("x")}, {"size", {}, scalar("1")}}), spec).empty());
  CHECK(faults(map({}), spec) ==
        "missing key 'path' | for example path: a.gguf\nmissing key 'size' | expected a size\n");
  CHECK(faults(map({{"colour", {}, scalar("x")}}), spec).substr(0, 50) ==
        "unknown key 'colour' | known keys: path, size\nmiss");
}

TEST_CASE("a key of an earlier version is reported with what to do now") {
  const FieldSpec path{.name = "path", .kind = FieldKind::kPath};
  const FieldSpec spec{.kind = FieldKind::kMap, .fields = {path}, .former = {{"pat", "remove it"}}};
  CHECK(faults(map({{"pat", {}, scalar("x")}}), spec) == "the key 'pat' no longer exists | remove it\n");
}

TEST_CASE("the message for a key one level too high says where it belongs") {
  const FieldSpec recipe{.name = "recipe"};
  const FieldSpec map_form{.kind = FieldKind::kMap, .fields = {recipe}};
  const FieldSpec quantize{.name = "quantize", .kind = FieldKind::kOneOf, .alternatives = {{}, map_form}};
  const FieldSpec path{.name = "path", .kind = FieldKind::kPath};
  const FieldSpec spec{.kind = FieldKind::kMap, .fields = {path, quantize}};
  CHECK(faults(map({{"recipe", {}, scalar("x")}}), spec) ==
        "unknown key 'recipe' | 'recipe' is a key of 'quantize'; known keys: path, quantize\n");
}

TEST_CASE("a misspelled key is not also reported as missing") {
  const FieldSpec path{.name = "path", .kind = FieldKind::kPath, .required = true};
  const FieldSpec spec{.kind = FieldKind::kMap, .fields = {path}};
  CHECK(faults(map({{"pth", {}, scalar("x")}}), spec) == "unknown key 'pth' | did you mean 'path'?\n");
}

TEST_CASE("exactly one key of a group must be present") {
  const FieldSpec a{.name = "gguf", .kind = FieldKind::kPath, .group = "sink"};
  const FieldSpec b{.name = "other", .kind = FieldKind::kPath, .group = "sink"};
  const FieldSpec spec{.kind = FieldKind::kMap, .fields = {a, b}};
  CHECK(faults(map({{"other", {}, scalar("x")}}), spec).empty());
  CHECK(faults(map({}), spec) == "missing one of the keys 'gguf', 'other'\n");
  CHECK(faults(map({{"other", {}, scalar("x")}, {"gguf", {}, scalar("x")}}), spec) ==
        "'gguf' and 'other' cannot be given together | give exactly one of them\n");
}

TEST_CASE("an unknown key is taken for the missing one of a group") {
  const FieldSpec a{.name = "gguf", .kind = FieldKind::kPath, .group = "source"};
  const FieldSpec b{.name = "other", .kind = FieldKind::kPath, .group = "source"};
  const FieldSpec spec{.kind = FieldKind::kMap, .fields = {a, b}};
  CHECK(faults(map({{"onnx", {}, scalar("x")}}), spec) == "unknown key 'onnx' | known keys: gguf, other\n");
}

TEST_CASE("every item of lists and dictionaries is checked") {
  const FieldSpec sizes{.kind = FieldKind::kList, .item = {of(FieldKind::kBytes)}, .minimum = 3};
  CHECK(faults(list({scalar("1"), scalar("x")}), sizes) ==
        "expected at least 3 items, found 2\n'x' is not a size | write a number and a unit: 512MiB, 20G, 1.5GiB\n");
  const FieldSpec named{.kind = FieldKind::kDictionary, .item = {of(FieldKind::kBool)}};
  CHECK(faults(map({{"any", {}, scalar("true")}, {"key", {}, scalar("3")}}), named) == "'3' is not true or false\n");
}

TEST_CASE("an alternative is chosen by form, then by what passes") {
  const FieldSpec automatic{.kind = FieldKind::kEnum, .choices = {"auto"}};
  const FieldSpec number{.kind = FieldKind::kInteger, .minimum = 1, .maximum = 8};
  const FieldSpec path{.name = "path", .kind = FieldKind::kPath, .required = true, .example = "a"};
  const FieldSpec options{.kind = FieldKind::kMap, .fields = {path}};
  const FieldSpec spec{.kind = FieldKind::kOneOf, .alternatives = {automatic, number, options}};
  CHECK(faults(scalar("auto"), spec).empty());
  CHECK(faults(scalar("8"), spec).empty());
  CHECK(faults(map({{"path", {}, scalar("x")}}), spec).empty());
  CHECK(faults(scalar("9"), spec) == "'9' is not 'auto' or an integer from 1 to 8 or a map\n");
  CHECK(faults(map({}), spec) == "missing key 'path' | for example path: a\n");
  CHECK(faults(list({}), spec) == "expected 'auto' or an integer from 1 to 8 or a map, found a list\n");
  CHECK(faults(scalar("atuo"), spec) ==
        "'atuo' is not 'auto' or an integer from 1 to 8 or a map | did you mean 'auto'?\n");
}

TEST_CASE("a field's own check runs when the rest is valid") {
  const FieldSpec even{.kind = FieldKind::kInteger, .check = [](const ConfigNode& node) -> std::string {
                         return (node.scalar.back() - '0') % 2 == 0 ? "" : node.scalar + " is odd";
                       }};
  CHECK(faults(scalar("4"), even).empty());
  CHECK(faults(scalar("5"), even) == "5 is odd\n");
  CHECK(faults(scalar("x"), even) == "'x' is not an integer\n");
}

TEST_CASE("a lint stops after a hundred errors") {
  Diagnostics out;
  const ConfigNode items = list(std::vector<ConfigNode>(1000, scalar("x")));
  const FaultyNodes faulty = lint(items, {.kind = FieldKind::kList, .item = {of(FieldKind::kBool)}}, out);
  REQUIRE(out.errors().size() == kMaxErrors + 1);
  CHECK(out.errors().back().what == "stopped after 100 errors");
  CHECK(faulty.contains(&items.items.back()));  // not checked, so not to be read
}

TEST_CASE("the caret of a bad pattern is at its position in the file") {
  const ConfigText text{"a.yaml", {"match: ffn_)up", "match: 'ffn_)up'", R"(match: "ffn_\x29up")"}};
  ConfigNode plain;
  plain.scalar = "ffn_)up";
  plain.position = {1, 8, 7};
  CHECK(pattern_fault(text, plain) ==
        "a.yaml:1:12: error: bad regular expression 'ffn_)up': found a closing ) with no corresponding opening "
        "parenthesis\n"
        "     1 | match: ffn_)up\n"
        "       |            ^\n"
        "  help: escape special characters with a backslash: 'a\\.b\\('\n");
  ConfigNode quoted = plain;
  quoted.quoted = true;
  quoted.position = {2, 8, 9};
  CHECK(pattern_fault(text, quoted).substr(0, 12) == "a.yaml:2:13:");
}

TEST_CASE("a bad pattern written with escapes is marked as a whole") {
  const ConfigText text{"a.yaml", {R"(match: "ffn_\x29up")"}};
  ConfigNode node;
  node.scalar = "ffn_)up";
  node.quoted = true;
  node.position = {1, 8, 12};
  CHECK(pattern_fault(text, node) ==
        "a.yaml:1:8: error: bad regular expression 'ffn_)up': found a closing ) with no corresponding opening "
        "parenthesis at character 5\n"
        "     1 | match: \"ffn_\\x29up\"\n"
        "       |        ^^^^^^^^^^^^\n"
        "  help: escape special characters with a backslash: 'a\\.b\\('\n");
}
