// Tests of values that maps take from config.json.
#include "stages/huggingface/map/values.h"
#include "pipeline/io/platform/filesystem.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "pipeline/config/yaml_reader.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
namespace json = boost::json;

namespace {

Result<ValueRule> rule_of(const std::string& yaml) {
  Diagnostics errors;
  const auto document = read_document(yaml, "a.yaml", errors);
  if (!document) return errors.together();
  return read_value_rule(document->root);
}

std::map<std::string, ValueRule> values_of(const std::map<std::string, std::string>& rules) {
  std::map<std::string, ValueRule> values;
  for (const auto& [name, yaml] : rules) values[name] = rule_of(yaml).value();
  return values;
}

// Returns the value as JSON, or the error.
std::string found(const std::string& yaml, const std::string& config,
                  const std::map<std::string, std::string>& rules = {}, const std::vector<std::string>& tensors = {}) {
  const auto rule = rule_of(yaml);
  if (!rule) return render(rule.error());
  const auto values = values_of(rules);
  Facts facts("folder", json::parse(config).as_object(), values);
  // The first value of a tensor is its layer.
  facts.set_tensors(
      tensors,
      [](const std::string& name, std::optional<std::uint64_t> row) -> Result<std::vector<float>> {
        if (row) return std::vector<float>{0, *row % 2 == 0 ? 0.0f : 0.5f};
        if (name.ends_with(".big")) return input_error({}, "too large");
        if (name.ends_with(".many")) return std::vector<float>(1 << 20);
        return std::vector<float>{static_cast<float>(name[2] - '0'), 0.5f};
      },
      [](const std::string& name) { return name.size(); }, [](const std::string& name) { return 2 * name.size(); },
      [](const std::string& name) -> Result<std::vector<std::int64_t>> {
        if (name.ends_with(".big")) return input_error({}, "too large");
        return std::vector<std::int64_t>{23456789012345, -1};
      });
  facts.set_tokens(
      [](std::string_view text) { return text == "yes" ? std::optional<std::uint64_t>(9693) : std::nullopt; });
  const auto value = facts.evaluate(rule.value(), nullptr, 7);
  return value ? json::serialize(value.value()) : render(value.error());
}

struct Example {
  std::string yaml, config, value;
};

}  // namespace

TEST_CASE("every value function works as documented") {
  const Example kExamples[] = {
      {"{above: [a, 1]}", R"({"a": 2})", "true"},
      {"{above: [a, 1]}", R"({"a": 1})", "false"},
      {"{above: [a, 1]}", "{}", "false"},
      {"{all: [a, b]}", R"({"a": 1, "b": "x"})", "true"},
      {"{all: [a, b]}", R"({"a": 1, "b": ""})", "false"},
      {"{alternating: [a, b]}", R"({"a": [1, 2], "b": [3, 4]})", "[1,3,2,4]"},
      {"{alternating: [a, b]}", R"({"a": [1, 2]})", "null"},
      {"{each_element: [a, 1]}", R"({"a": [[1, 2], [3, 4]]})", "[2,4]"},
      {"{from_end: [a, 8]}", R"({"a": [1, -1]})", "[1,7]"},
      {"{indices: a}", R"({"a": 3})", "[0,1,2]"},
      {"{joined: [a, b]}", R"({"a": [1, 2], "b": []})", "[1,2]"},
      {"{number_in: [a, 1]}", R"({"a": "4/8"})", "8"},
      {"{number_in: [a, 2]}", R"({"a": "4/8"})", "null"},
      {"{sorted_by: [a, b]}", R"({"a": ["x", "y", "z"], "b": [2, 1, 1]})", R"(["y","z","x"])"},
      {"{any: [a, b]}", R"({"a": 0, "b": []})", "false"},
      {"{any: [a, b]}", R"({"a": 0, "b": [0]})", "true"},
      {"{choice: [a, \"x\", 1, \"y\", 2]}", R"({"a": "y"})", "2"},
      {"{choice: [a, \"x\", 1]}", "{}", "null"},
      {"{choose: [a, 1, 2]}", R"({"a": true})", "1"},
      {"{choose: [a, 1, 2]}", "{}", "2"},
      {"{contains: [a, 3]}", R"({"a": [1, 3.0]})", "true"},
      {"{contains: [a, \"b\"]}", R"({"a": "abc"})", "true"},
      {"{contains: [a, \"b\"]}", "{}", "false"},
      {"{difference: [a, 2, 3]}", R"({"a": 10})", "5"},
      {"{difference: [a, 0.5]}", R"({"a": 1})", "5E-1"},
      {"{divisible: [a, 64]}", R"({"a": [32.0, 89.6, 96, 6.4]})", "[64,128,128,64]"},
      {"{divisible: [149, 60]}", "{}", "180"},
      {"{each_choose: [a, 5, 6]}", R"({"a": [true, false]})", "[5,6]"},
      {"{each_first: [a, 3]}", R"({"a": [1, null, 0]})", "[1,3,0]"},
      {"{each_member: [a, \"b\", \"c\"]}", R"({"a": [{"b": {"c": 1}}, {"b": 2}, 3]})", "[1,null,null]"},
      {"{each_is: [a, \"f\"]}", R"({"a": ["f", "g"]})", "[true,false]"},
      {"{each_not: a}", R"({"a": [0, 1]})", "[true,false]"},
      {"{each_normal_quantile: a}", R"({"a": [0.5]})", "[0E0]"},
      {"{each_true: a}", R"({"a": [0, 1]})", "[false,true]"},
      {"{element: [a, 1]}", R"({"a": [4, 5]})", "5"},
      {"{element: [a, 2]}", R"({"a": [4, 5]})", "null"},
      {"{element: [a, 0]}", R"({"a": 4})", "null"},
      {"{member: [a, b]}", R"({"a": {"x": 4}, "b": "x"})", "4"},
      {"{member: [a, b]}", R"({"a": {"x": 4}, "b": "y"})", "null"},
      {"{member: [a, b]}", R"({"a": 4, "b": "y"})", "null"},
      {"{every: [4, 2, 1]}", "{}", "[false,true,false,true]"},
      {"{first: [a, b, 3]}", R"({"a": null})", "3"},
      {"{first_true: [a, b]}", R"({"a": 0, "b": 5})", "5"},
      {"{has_tensor: \"x.1.w\"}", "{}", "true"},
      {"{has_tensor: \"x.1\"}", "{}", "false"},
      {"{int: a}", R"({"a": 2.9})", "2"},
      {"{is: [a, 1, 2]}", R"({"a": 2.0})", "true"},
      {"{is: [a, \"x\"]}", "{}", "false"},
      {"{largest: [a, b, 2]}", R"({"b": 1.5})", "2"},
      {"{largest: [a, 0]}", R"({"a": [3, -1]})", "[3,0]"},
      {"{largest_in: a}", R"({"a": [3, 7.5, -1]})", "7.5E0"},
      {"{largest_in: a}", "{}", "null"},
      {"{layers_of: \"x.\"}", "{}", "12"},
      {"{layers_of: \"y.\"}", "{}", "0"},
      {"{leading: [a, 0, \"f\"]}", R"({"a": [0, "f", 1, 0]})", "2"},
      {"{leading: [a, 0]}", R"({"a": [0, 0]})", "2"},
      {"{leading: [a, 0]}", "{}", "null"},
      {"{least_listed: a}", R"({"a": " 12, 7,30"})", "7"},
      {"{least_listed: a}", R"({"a": "none"})", "null"},
      {"{least_listed: a}", R"({"a": 3})", "null"},
      {"{as_rope_type: a}", R"({"a": {"type": "x", "rope_type": "y"}})", R"({"type":"x","rope_type":"x"})"},
      {"{as_rope_type: a}", R"({"a": {"factor": 2}})", R"({"factor":2})"},
      {"{as_rope_type: a}", "{}", "null"},
      {"{from_index: [3, 1]}", "{}", "[false,true,true]"},
      {"{from_index: [2, a]}", "{}", "null"},
      {"{lacks_rope_keys: a}", R"({"a": {"type": "linear", "rope_type": "linear"}})", "true"},
      {"{lacks_rope_keys: a}", R"({"a": {"rope_type": "linear", "factor": null}})", "false"},
      {"{lacks_rope_keys: a}", R"({"a": {"factor": 2}})", "true"},
      {"{lacks_rope_keys: a}", R"({"a": {"rope_type": "other"}})", "false"},
      {"{lacks_rope_keys: a}", "{}", "false"},
      {"{member_instead: [a, \"b\", 1, 2]}", R"({"a": {"b": 1, "c": 1}})", R"({"b":2,"c":1})"},
      {"{member_instead: [a, \"b\", 1, 2]}", R"({"a": {"c": 1}})", R"({"c":1})"},
      {"{numbered: [\"L\", a]}", R"({"a": 2})", R"(["L0","L1"])"},
      {"{object: [\"b\", a, \"c\", 2.5]}", R"({"a": 1})", R"({"b":1,"c":2.5E0})"},
      {"{real: a}", R"({"a": 2.0})", "true"},
      {"{real: a}", R"({"a": 2})", "false"},
      {"{values_by_number: a}", R"({"a": {"10": 1, "9": 2}})", "[2,1]"},
      {"{values_by_number: a}", R"({"a": [2, 1]})", "[2,1]"},
      {"{sorted_values: a}", R"({"a": [2, 1]})", "[2,1]"},
      {"{length: a}", R"({"a": [1, 2]})", "2"},
      {"{length: a}", R"({"a": {"b": 1}})", "1"},
      {"{letters: a}", R"({"a": "M-"})", R"(["M","-"])"},
      {"{letters: a}", "{}", "null"},
      {"{listed: [4, a, 1]}", R"({"a": [1, 3, 9, 0, -1]})", "[true,false,true,false]"},
      {"{listed: [2, a, 0]}", R"({"a": [1]})", "[false,true]"},
      {"{listed: [2, a, 0]}", "{}", "null"},
      {"{list: [a, 2]}", R"({"a": 1})", "[1,2]"},
      {"{log: 1}", "{}", "0E0"},
      {"{exp: [a]}", R"({"a": [0, 1]})", "[1E0,2.718281828459045E0]"},
      {"{exp: a}", "{}", "null"},
      {"{smallest: [a, 2, b]}", R"({"a": 3})", "2"},
      {"{last: a}", R"({"a": [1, 2]})", "2"},
      {"{last: a}", R"({"a": 5})", "5"},
      {"{last: a}", R"({"a": []})", "null"},
      {"{text: [a, \"-\", b]}", R"({"a": "x", "b": "y"})", R"("x-y")"},
      {"{text: [a, \"-\"]}", "{}", "null"},
      {"{members_renamed: [a, \":\", \".\", \"+\", \"\"]}", R"({"a": {"c:3:5": 1, "d+": 2}})", R"({"c.3.5":1,"d":2})"},
      {"{members_renamed: [a, \":\", \".\"]}", "{}", "null"},
      {"{named_values: [a, b]}", R"({"a": ["x", "y", "z"], "b": [1, 2]})", R"({"x":1,"y":2})"},
      {"{named_values: [a, b]}", R"({"a": ["x"]})", "null"},
      {"{lower: a}", R"({"a": "YaRN"})", "\"yarn\""},
      {"{not: a}", R"({"a": 0})", "true"},
      {"{of_length: [a, 2]}", R"({"a": [4, 5]})", "[4,5]"},
      {"{of_length: [a, 2]}", "{}", "null"},
      {"{pad: [a, 4, 0]}", R"({"a": [1, 2]})", "[1,2,0,0]"},
      {"{pad: [a, 1, 0]}", R"({"a": [1, 2]})", "[1]"},
      {"{power: [2, 3]}", "{}", "8E0"},
      {"{present: [a, b]}", R"({"a": 0, "b": null})", "false"},
      {"{product: [a, 3]}", R"({"a": 2})", "6"},
      {"{product: [a, 3]}", "{}", "null"},
      {"{quotient: [a, 2]}", R"({"a": 7})", "3"},
      {"{ratio: [a, 2]}", R"({"a": 7})", "3.5E0"},
      {"{sorted_values: a}", R"({"a": {"10": 1, "1": 2}})", "[2,1]"},
      {"{sum: [a, 1, 1]}", R"({"a": 7})", "9"},
      {"{sum: [a, 1]}", R"({"a": [7, null, 1.5]})", "[8,null,2.5E0]"},
      {"{product: [a, b]}", R"({"a": [2, 3], "b": [4, 5]})", "[8,15]"},
      {"{tensor_columns: \"x.11.w\"}", "{}", "12"},
      {"{tensor_columns: \"z\"}", "{}", "null"},
      {"{tensor_columns: \"x.{layer}.n\"}", "{}", "[10,10]"},
      {"{tensor_integers: \"x.1.w\"}", "{}", "[23456789012345,-1]"},
      {"{tensor_integers: \"z\"}", "{}", "null"},
      {"{tensor_rows: \"x.11.w\"}", "{}", "6"},
      {"{tensor_rows: \"z\"}", "{}", "null"},
      {"{tensor_rows: \"x.{layer}.n\"}", "{}", "[5,5]"},
      {"{tensor_rows: \"z.{layer}\"}", "{}", "null"},
      {"{tensor_values: \"x.1.w\"}", "{}", "[1E0,5E-1]"},
      {"{tensor_values: \"x.{layer}.n\"}", "{}", "[0E0,5E-1,1E0,5E-1]"},
      {"{tensor_values: \"x.{layer}.w\"}", "{}", "null"},
      {"{token_id: \"yes\"}", "{}", "9693"},
      {"{window_pattern: [a, 4]}", R"({"a": "LG"})", "[true,false,true,false]"},
      {"{window_pattern: [a, 4]}", R"({"a": 2})", "[true,false,true,false]"},
      {"{repeated: [a, 3]}", R"({"a": 5})", "[5,5,5]"},
      {"{repeated: [a, 3]}", R"({"a": [5, 6]})", "[5,6]"},
      {"{repeated: [a, 3]}", "{}", "null"},
      {"{zero_rows: [\"x.11.w\", 2]}", "{}", "[2,4]"},
      {"{zero_rows: [\"x.11.w\", 5]}", "{}", "[]"},
      {"{zero_rows: [\"z\", 2]}", "{}", "null"},
  };
  std::set<std::string_view> met{"added_token", "file_contains", "file_text",
                                 "file_value",  "has_file",      "pooling_type"};  // tested below
  for (const auto& [yaml, config, value] : kExamples) {
    CAPTURE(yaml, config);
    CHECK(found(yaml, config, {}, {"x.1.w", "x.11.w", "x.y", "x.0.n", "x.1.n"}) == value);
    met.insert(std::string_view(yaml).substr(1, yaml.find(':') - 1));
  }
  for (const ValueFunction& function : value_functions()) CHECK(met.count(function.name) == 1);
}

TEST_CASE("names are looked up in the map's values, the values set, and config.json") {
  CHECK(found("a", R"({"a": 1})") == "1");
  CHECK(found("a.b.1", R"({"a": {"b": [4, 5]}})") == "5");
  CHECK(found("a.b.2", R"({"a": {"b": [4, 5]}})") == "null");
  CHECK(found("layer", R"({"layer": 1})") == "7");
  CHECK(found("a", R"({"a": 1})", {{"a", "{sum: [a, 1]}"}}) == "2");              // its own name: that of config.json
  CHECK(found("a", R"({"a": 1})", {{"a", "{sum: [b, 1]}"}, {"b", "a"}}) == "2");  // b asks a, which asks config.json
  CHECK(found("[x, a, b]", R"({"b": 1, "a": null})") == "null");                  // there, though null
  CHECK(found("[x, b]", R"({"b": 1})") == "1");
  CHECK(found("\"a\"", R"({"a": 1})") == "\"a\"");
  CHECK(found("1e-5", "{}") == "1E-5");
  CHECK(found("null", "{}") == "null");
}

TEST_CASE("members of the text model are at the top level of config.json") {
  CHECK(found("a", R"({"a": 1, "text_config": {"a": 2}})") == "2");
  CHECK(found("root.a", R"({"a": 1, "text_config": {"a": 2}})") == "1");
  CHECK(found("a", R"({"a": 1, "thinker_config": {"text_config": {"a": 3}}})") == "3");
}

TEST_CASE("rotary embedding has one form, however config.json specifies it") {
  CHECK(found("rope.rope_theta", R"({"rope_theta": 5.0})") == "5E0");
  CHECK(found("rope.rope_type", R"({"rope_scaling": {"type": "yarn"}})") == "\"yarn\"");
  CHECK(found("rope.rope_theta", R"({"rope_parameters": {"full_attention": {"rope_theta": 2}}})") == "2");
  CHECK(found("rope_parameters.sliding_attention.rope_theta", R"({"rope_local_base_freq": 7})") == "7");
}

TEST_CASE("other files of the folder can be read, and no others") {
  const TempDir folder;
  write_text(folder.file("modules.json"), R"([{"type": "x.Pooling", "path": "1_Pooling"}])");
  fs::create_directory(folder.file("1_Pooling"));
  write_text(folder.file("1_Pooling/config.json"), R"({"pooling_mode_cls_token": true})");
  const std::map<std::string, ValueRule> none;
  const Facts facts(folder.path(), {}, none);
  const auto value = [&](const std::string& yaml) {
    const auto result = facts.evaluate(rule_of(yaml).value());
    return result ? json::serialize(result.value()) : result.error().what;
  };
  CHECK(value("{pooling_type: [1]}") == "2");
  CHECK(value("{file_value: [\"1_Pooling/config.json\", \"pooling_mode_cls_token\"]}") == "true");
  CHECK(value("{file_value: [\"none.json\", \"a\"]}") == "null");
  CHECK(value("{file_text: \"1_Pooling/config.json\"}") == R"("{\"pooling_mode_cls_token\": true}")");
  CHECK(value("{file_text: \"none.jinja\"}") == "null");
  CHECK(facts.files_read() == std::set<fs::path>{folder.file("1_Pooling/config.json"), folder.file("modules.json")});
  CHECK(value("{file_text: \"../a\"}") == "'\"../a\"' is not a file name");
  CHECK(value("{file_value: [\"../a\", \"b\"]}") == "'\"../a\"' is not a file name");
  CHECK(value("{file_value: [\"/etc/passwd\", \"b\"]}") == "'\"/etc/passwd\"' is not a file name");
  CHECK(value("{file_contains: [\"modules.json\", \"POOLING\"]}") == "true");
  CHECK(value("{file_contains: [\"modules.json\", \"dense\"]}") == "false");
  CHECK(value("{file_contains: [\"README.md\", \"a\"]}") == "false");
  CHECK(value("{has_file: \"1_Pooling/config.json\"}") == "true");
  CHECK(value("{has_file: \"1_Pooling\"}") == "false");
  CHECK(value("{has_file: \"../a\"}") == "'\"../a\"' is not a file name");
  write_text(folder.file("modules.json"), R"([{"type": "x.Pooling", "path": "2_Pooling"}])");
  CHECK(value("{pooling_type: [1]}") == "names the folder '2_Pooling', which has no config.json");
  for (const std::string path : {"../x", "/etc"}) {
    write_text(folder.file("modules.json"), R"([{"type": "x.Pooling", "path": ")" + path + "\"}]");
    CHECK(value("{pooling_type: [1]}") == "names the folder '" + path + "', which is outside the checkpoint");
  }
}

TEST_CASE("the id of an added token is that in tokenizer_config.json or tokenizer.json") {
  const TempDir folder;
  write_text(folder.file("tokenizer_config.json"), R"({"added_tokens_decoder": {"7": {"content": "<a>"}}})");
  write_text(folder.file("tokenizer.json"),
             R"({"added_tokens": [{"id": 9, "content": "<b>"}], "model": {"type": "BPE", "vocab": {"x": 0}}})");
  const std::map<std::string, ValueRule> none;
  const Facts facts(folder.path(), {}, none);
  const auto value = [&](const std::string& yaml) {
    return json::serialize(facts.evaluate(rule_of(yaml).value()).value());
  };
  CHECK(value("{added_token: \"<a>\"}") == "7");
  CHECK(value("{added_token: \"<b>\"}") == "9");
  CHECK(value("{added_token: \"<c>\"}") == "null");
}

TEST_CASE("a text is found in a large file across block boundaries") {
  const TempDir folder;
  const std::map<std::string, ValueRule> none;
  const Facts facts(folder.path(), {}, none);
  constexpr std::size_t kPiece = 1 << 20;
  for (const std::size_t offset : {kPiece - 3, kPiece - 1, kPiece, 2 * kPiece - 2}) {
    std::string text(3 * kPiece, '\n');
    text.replace(offset, 6, "# Card");
    write_text(folder.file("README.md"), text);
    CAPTURE(offset);
    CHECK(facts.evaluate(rule_of("{file_contains: [\"README.md\", \"# card\"]}").value()).value() == true);
  }
}

TEST_CASE("a value that cannot be computed is an error with the value and its location") {
  const std::pair<std::string, std::string> kCases[] = {
      {"{quotient: [a, 0]}", "8 cannot be divided by 0"},
      {"{quotient: [a, -1]}", "8 cannot be divided by -1"},
      {"{ratio: [a, 0]}", "8 cannot be divided by 0"},
      {"{ratio: [a, inf]}", "inf is not a finite number"},
      {"{exp: -inf}", "-inf is not a finite number"},
      {"{smallest: [a, inf]}", "inf is not a finite number"},
      {"{largest: [a, nan]}", "nan is not a finite number"},
      {"{product: [a, 9223372036854775807]}", "the result of 8 and 9223372036854775807 is too large"},
      {"{int: huge}", "1e+300 is too large for an integer"},
      {"{log: 0}", "0 has no logarithm"},
      {"{choice: [t, \"y\", 1]}", "'\"x\"' is not one of \"y\""},
      {"{every: [4, 0, 0]}", "period 0 is not positive"},
      {"{window_pattern: [\"\", 4]}", "'\"\"' is not a layer pattern"},
      {"{length: a}", "'8' is not a list"},
      {"{sum: [l, {list: [1, 2, 3]}]}", "lists have different lengths, 2 and 3"},
      {"{sum: [e, 1]}", "a list is empty"},
      {"{of_length: [l, 3]}", "'[1,2]' has 2 elements, expected 3"},
      {"{token_id: \"no\"}", "the tokenizer has no token 'no'"},
      {"{tensor_values: \"x.big\"}", "too large"},
      {"{tensor_integers: \"x.big\"}", "too large"},
      {"{text: [t, a]}", "'8' is not a string"},
      {"{members_renamed: [t, \"a\", \"b\"]}", "'\"x\"' is not an object"},
      {"{members_renamed: [{object: [\"a\", 1]}, \"\", \"b\"]}", "'\"\"' cannot be replaced with '\"b\"'"},
      {"{named_values: [l, l]}", "'1' is not a name"},
      {"{zero_rows: [\"x.big\", t]}", "'\"x\"' is not a number of rows"},
      {"{tensor_values: \"{layer}.many\"}", "'{layer}.many' has more than 1048576 values"},
  };
  for (const auto& [yaml, what] : kCases) {
    const std::string error =
        found(yaml, R"({"a": 8, "t": "x", "huge": 1e300, "l": [1, 2], "e": []})", {}, {"x.big", "0.many", "1.many"});
    CAPTURE(yaml);
    const std::string name = yaml.substr(1, yaml.find(':') - 1);
    CHECK(error == "folder/config.json: error: " + what + "\n  required by " + name + " at a.yaml:1:1\n");
  }
}

TEST_CASE("a value that is not a number is named with its key") {
  CHECK(found("{sum: [1, b]}", R"({"b": "x"})") ==
        "folder/config.json: error: b is \"x\", a string; expected a number\n"
        "  help: correct it, or take config.json from the original model\n");
  CHECK(
      found("{exp: b}", R"({"b": 1e999})").starts_with("folder/config.json: error: b is Infinity; expected a finite"));
}

TEST_CASE("invalid rules are errors with their location") {
  std::string deep = "a";
  for (int i = 0; i < 20; ++i) deep = "{not: " + deep + "}";
  std::string many;
  for (int i = 0; i < 64; ++i) many += "a, ";
  const std::pair<std::string, std::string> kCases[] = {
      {"{frist: [a]}", "unknown function 'frist'"},
      {"{not: [a, b]}", "not takes 1 value, not 2"},
      {"{element: [a, 1, 2]}", "element takes 2 values, not 3"},
      {"{joined: [" + many + "a]}", "joined takes at most 64 values, not 65"},
      {"{choice: [a]}", "choice takes at least 3 values, not 1"},
      {"{first: [a], sum: [1, 2]}", "expected one function"},
      {"[a, 'b']", "expected a list of config.json names"},
      {deep, "functions are nested deeper than 16"},
  };
  for (const auto& [yaml, what] : kCases) {
    const auto rule = rule_of(yaml);
    REQUIRE(!rule);
    CHECK(rule.error().code == ExitCode::kUsage);
    CHECK(rule.error().what == what);
    CHECK(rule.error().where.starts_with("a.yaml:1:"));
  }
  CHECK(rule_of("{frist: [a]}").error().help == "did you mean 'first'?");
}

TEST_CASE("values that refer to one another endlessly are an error") {
  std::map<std::string, std::string> chain, wide;
  for (int i = 0; i < 1000; ++i) chain["v" + std::to_string(i)] = "v" + std::to_string(i + 1);
  CHECK(found("v0", "{}", chain).find("values refer to one another more than 64 levels deep") != std::string::npos);
  for (int i = 0; i < 40; ++i) {
    const std::string next = "v" + std::to_string(i + 1);
    wide["v" + std::to_string(i)] = "{first: [" + next + ", " + next + "]}";
  }
  CHECK(found("v0", "{}", wide).find("computing the value takes more than 1000000 steps") != std::string::npos);
}

TEST_CASE("values that double with each reference to one another are an error") {
  std::map<std::string, std::string> values{{"v16", "{indices: 100000}"}};
  for (int i = 0; i < 16; ++i) {
    const std::string next = "v" + std::to_string(i + 1);
    values["v" + std::to_string(i)] = "{joined: [" + next + ", " + next + "]}";
  }
  CHECK(found("v0", "{}", values).find("computing the value takes more than 2000000 elements of lists") !=
        std::string::npos);
}

TEST_CASE("a list of long values is an error") {
  const std::map<std::string, std::string> values{
      {"list", "{indices: 100000}"},
      {"choose", "{each_choose: [list, list, 1]}"},
      {"first", "{each_first: [list, list]}"},
      {"pad", "{pad: [list, 100000, list]}"},
      {"numbered", "{numbered: ['" + std::string(1000, 'x') + "', 100000]}"},
  };
  for (const char* name : {"choose", "first", "pad", "numbered"}) {
    CAPTURE(name);
    CHECK(found(name, "{}", values).find("a list of 100000 copies of ") != std::string::npos);
  }
}

TEST_CASE("counts are non-negative integers") {
  const std::map<std::string, ValueRule> none;
  const auto count = [&](const std::string& config) {
    const Facts facts("folder", json::parse(config).as_object(), none);
    const auto result = facts.count(rule_of("[a, b]").value(), "the number of layers");
    return result ? std::to_string(result.value()) : result.error().what;
  };
  CHECK(count(R"({"b": 12})") == "12");
  CHECK(count("{}") == "the number of layers is missing: 'a', 'b'");
  CHECK(count(R"({"a": -1})") == "a is -1; expected an integer from 0 to 2^63 - 1");
  CHECK(count(R"({"a": 1.5})") == "a is 1.5; expected an integer from 0 to 2^63 - 1");
  CHECK(count(R"({"a": 1e300})") == "a is 1e+300; expected an integer from 0 to 2^63 - 1");
  CHECK(count(R"({"a": 9223372036854775808})") == "a is 9223372036854775808; expected an integer from 0 to 2^63 - 1");
  CHECK(count(R"({"a": [1]})") == "a is [1], a list; expected an integer from 0 to 2^63 - 1");
}

TEST_CASE("the key with a wrong value is found through the map's own values") {
  const std::map<std::string, ValueRule> own{{"own", rule_of("[text_size, size]").value()}};
  Facts facts("folder",
              json::parse(R"({"text_config": {"size": "64"}, "rope_scaling": {"factor": "8"},
                                        "rope_theta": -1, "n": [1, "2"]})")
                  .as_object(),
              own);
  const auto fault = [&](const std::string& rule, const json::value& value) {
    const Error error =
        facts.wrong_value(rule_of(rule).value(), value, "an integer", {"folder/config.json", "", "otherwise"});
    return error.what + " | " + error.help;
  };
  CHECK(fault("own", "64") == "size is \"64\", a string; expected an integer | write \"size\": 64, without quotes");
  CHECK(
      fault("rope.factor", "8") ==
      "rope_scaling.factor is \"8\", a string; expected an integer | write \"rope_scaling.factor\": 8, without quotes");
  CHECK(fault("rope.rope_theta", -1) ==
        "rope_theta is -1; expected an integer | correct it, or take config.json from the original model");
  CHECK(fault("n", "2") ==
        "n has the element \"2\", a string; expected an integer | correct it, or take config.json from the original "
        "model");
  CHECK(fault("{product: [own, 2]}", 5) ==
        "otherwise | it is computed from size (\"64\", a string): correct these in config.json");
  CHECK(fault("7", 7) == "otherwise | the value is computed at a.yaml:1:1");
}

TEST_CASE("keys that transformers leaves out are named with their values") {
  const std::map<std::string, ValueRule> none;
  const Facts facts("folder", {{"n_positions", 32}, {"hidden_size", 64}, {"num_attention_heads", 4}}, none);
  const auto help = [&](const char* key) {
    return facts.missing_values({key}, "folder/config.json", "x is made from it", "").help;
  };
  CHECK(help("n_ctx") == "add \"n_ctx\": 32, the value of n_positions, to config.json");
  CHECK(help("rotary_pct") == "add \"rotary_pct\": 1.0, unless only a part of each head is rotated, to config.json");
  CHECK(help("head_dim") == "add \"head_dim\": 16, which is hidden_size / num_attention_heads, to config.json");
  CHECK(help("x") == "take config.json from the original model, or add \"x\" to it");
}

TEST_CASE("a missing value is reported with the file it would stand in") {
  const TempDir folder;
  const std::string file = folder.file("preprocessor_config.json");
  const std::map<std::string, ValueRule> none;
  Facts facts(folder.path(), {}, none);
  facts.set("preprocessor", boost::json::object{}, file);
  const auto fault = [&](std::vector<std::string> names) {
    const Error error = facts.missing_values(std::move(names), folder.path() / "config.json", "", "");
    return error.where + ": " + error.what;
  };
  CHECK(fault({"a", "b", "a"}) == folder.path().string() + "/config.json: 'a' or 'b' is missing");
  CHECK(fault({"preprocessor.size"}) == folder.path().string() + ": has no preprocessor_config.json, with 'size'");
  write_text(file, "{}");
  CHECK(fault({"preprocessor.size"}) == file + ": 'size' is missing");
}

TEST_CASE("the class of a checkpoint is the first of architectures, the text model's before the whole one's") {
  const auto name = [](const std::string& config) { return checkpoint_class(json::parse(config).as_object()); };
  CHECK(name(R"({"architectures": ["A", "B"]})") == "A");
  CHECK(name(R"({"architectures": ["A"], "text_config": {"architectures": ["T"]}})") == "T");
  CHECK(name(R"({"architectures": "A"})").empty());
  CHECK(name(R"({"architectures": []})").empty());
  CHECK(name(R"({"architectures": [1]})").empty());
  CHECK(name(R"({"architectures": {"A": 1}})").empty());
}
