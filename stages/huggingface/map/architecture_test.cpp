// Tests of architecture maps: the built-in ones, and the errors in invalid ones.
#include "stages/huggingface/map/architecture.h"
#include "pipeline/io/platform/filesystem.h"

#include <boost/json/parse.hpp>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/upstream.h"
#include "stages/huggingface/tokenizer/tables.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

// Returns the error for a map, without its folder.
std::string fault(const std::string& yaml) {
  const TempDir folder;
  const std::string path = folder.file("a.yaml");
  write_text(path, yaml);
  const auto architecture = read_architecture(path);
  if (architecture) return "";
  std::string text = render(architecture.error());
  for (std::size_t at; (at = text.find(folder.path().string() + "/")) != std::string::npos;)
    text.erase(at, folder.path().string().size() + 1);
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("every built-in map can be read and lists what it serves") {
  std::set<std::pair<ModelPart, std::string>> classes;
  std::set<std::string> others;  // used instead of a map that serves the class
  for (const BuiltInArchitecture& each : built_in_architectures())
    if (const auto map = read_architecture(std::string(each.name)))
      for (const OtherMap& other : map.value().other_maps) others.insert(other.map);
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    const auto architecture = read_architecture(std::string(each.name));
    CAPTURE(each.name, architecture ? "" : render(architecture.error()));
    REQUIRE(architecture);
    const Architecture& it = architecture.value();
    CHECK(!it.description.empty());
    CHECK(it.partial == (it.serves.empty() && !it.serves_when && !others.contains(std::string(each.name))));
    for (const std::string& name : it.serves) CHECK(classes.emplace(it.part, name).second);
    if (it.partial) continue;
    CHECK(!it.name.empty());
    CHECK(!it.tensors.empty());
    CHECK(it.tokenizer.readers.empty() == (it.part == ModelPart::kProjector || it.adapters));
    for (const CheckpointRule& rule : it.tensors)
      for (const TensorOutput& output : rule.outputs)
        for (const NamePattern& from : rule.from) CHECK((from.name().has_layer() || !output.name.has_layer()));
  }
  for (const auto& [part, name] : classes) CHECK(find_architecture(name, "config.json", part));
}

TEST_CASE("the class of the whole model takes precedence over its text model's if a map requests it") {
  const auto name = [](const std::string& config) {
    return class_to_convert(boost::json::parse(config).as_object()).value();
  };
  const std::string text = R"(, "text_config": {"architectures": ["Qwen3ForCausalLM"]}})";
  CHECK(name(R"({"architectures": ["KimiVLForConditionalGeneration"])" + text) == "Qwen3ForCausalLM");
  CHECK(name(R"({"architectures": ["StepVLForConditionalGeneration"])" + text) == "StepVLForConditionalGeneration");
  CHECK(name(R"({"text_config": {"architectures": ["Qwen3ForCausalLM"]}})") == "Qwen3ForCausalLM");
  CHECK(name("{}").empty());
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    const auto map = read_architecture(std::string(each.name));
    REQUIRE(map);
    for (const std::string& whole : map.value().serves_whole) CHECK(std::ranges::count(map.value().serves, whole) == 1);
  }
}

TEST_CASE("an unknown class: known classes of its family, and how to write a map") {
  const auto unknown = find_architecture("Qwen2ForTokenClassification", "m/config.json");
  REQUIRE(!unknown);
  const Error& error = unknown.error();
  CHECK(error.code == ExitCode::kBadInput);
  CHECK(error.where == "m/config.json");
  CHECK(error.what == "no architecture is known for 'Qwen2ForTokenClassification'");
  const std::string followed = "convert_hf_to_gguf.py of llama.cpp " + std::string(upstream_version()) +
                               ", which this ggufmill follows, does not support it either; a later version may";
  CHECK(error.detail == followed + "; known in the same family: 'Qwen2ForCausalLM', 'Qwen2Model'");
  CHECK(error.help.find("`ggufmill architectures new FOLDER -o mine.yaml`") != std::string::npos);
  // No served class belongs to this family.
  CHECK(find_architecture("Qwen9ForCausalLM", "").error().detail == followed);
}

TEST_CASE("a class that only convert_hf_to_gguf.py converts is refused, and the error describes it") {
  std::size_t rows = 0;
  for (const auto& row : table_rows(unserved_class_table())) {
    REQUIRE(row.size() == 4);
    const auto found = find_architecture(std::string(row[0]), "config.json");
    CAPTURE(row[0]);
    REQUIRE(!found);
    CHECK(found.error().what == "'" + std::string(row[0]) + "' is " + std::string(row[1]) + ", which is not supported");
    CHECK(found.error().detail.find("follows llama.cpp " + std::string(upstream_version())) != std::string::npos);
    ++rows;
  }
  CHECK(rows > 0);
  CHECK(find_architecture("VLLMDecision2Model", "").error().what ==
        "'VLLMDecision2Model' is of an architecture of llama.cpp that is too new, vllm-decision2, which is not "
        "supported");
  CHECK(find_architecture("Qwen3TTSForConditionalGeneration", "").error().help == "convert_hf_to_gguf.py converts it");
}

TEST_CASE("checkpoints that config.json does not tell apart are recognized by the files in their folder") {
  const auto marked = [](const std::vector<std::string>& files, std::string_view config = {}) -> std::string {
    const TempDir folder;
    for (const std::string& file : files) {
      fs::create_directories(fs::path(folder.file(file)).parent_path());
      write_text(folder.file(file), "{}");
    }
    const auto found = marked_folder(folder.path(), no_added_maps(), config);
    if (!found) return found.error().what + "; " + found.error().help;
    return found.value() ? found.value()->checkpoint_class + " " + found.value()->config : "";
  };
  CHECK(marked({"config.json"}).empty());
  CHECK(marked({"config.json", "helper/shim.py"}) == "OpenJevModel config.json");
  CHECK(marked({"config.json", "joint_head_config.json"}, "config.json") == "ClefModel config.json");
  CHECK(marked({"config.json", "params.json", "helper/shim.py"}, "params.json").empty());
  CHECK(marked({"helper/shim.py"}).empty());
  CHECK(marked({"encoder/config.json", "julia_config.json"}) == "ModernBertDecisionModel encoder/config.json");
  CHECK(marked({"adapter_config.json", "schema_config.json"}) ==
        "'NimbleModel' is an adapter whose base model is not in the folder, which is not supported; "
        "convert_hf_to_gguf.py downloads the base model and merges them");
  CHECK(marked({"adapter_config.json", "schema_config.json", "params.json"}, "params.json").empty());
  CHECK(marked({"adapter_config.json"}).empty());
}

TEST_CASE("a class that is only a projector is converted as one") {
  CHECK(find_architecture("UltravoxModel", "", ModelPart::kProjector).has_value());
  const auto text = find_architecture("UltravoxModel", "config.json", ModelPart::kText);
  REQUIRE(!text);
  CHECK(text.error().what == "'UltravoxModel' is an encoder of images or sound (a projector)");
  CHECK(as_for_keys(text.error().help) == "convert it as one: `part: projector` in the source");
}

TEST_CASE("a class without a projector") {
  const auto found = find_architecture("LlamaForCausalLM", "config.json", ModelPart::kProjector);
  REQUIRE(!found);
  CHECK(found.error().what == "no map describes the projector of 'LlamaForCausalLM'");
  CHECK(found.error().help.starts_with(
      "if it has one, start from another model's map: `ggufmill architectures new FOLDER --like clip-gemma3"));
}

TEST_CASE("names of maps") {
  const auto unknown = read_architecture("lama");
  REQUIRE(!unknown);
  CHECK(unknown.error().code == ExitCode::kUsage);
  CHECK(unknown.error().what == "unknown architecture 'lama'");
  CHECK(unknown.error().help == "did you mean 'llama'? `ggufmill architectures` lists them");
  CHECK(!read_architecture("/no/such/mine.yaml"));
}

TEST_CASE("entries of a file come before those it extends, metadata after") {
  const TempDir folder;
  fs::create_directory(folder.file("base"));
  write_text(folder.file("base/b.yaml"),
             "name: b\nlayers: n\nvalues: {x: 1, y: 1}\nserves: [B]\n"
             "tensors: [{from: a, to: b}]\nmetadata: [{key: one, value: x}]\ncomputed: [{to: c, function: numbers, of: "
             "[l]}]\n");
  write_text(
      folder.file("a.yaml"),
      "extends: [./base/b.yaml, ./base/b.yaml]\nname: a\nvalues: {x: 2}\n"
      "tensors: [{from: a, to: c}]\nmetadata: [{key: two, value: x}]\nmetadata_first: [{key: zero, value: x}]\n");
  const auto read = read_architecture(folder.file("a.yaml"));
  CAPTURE(read ? "" : render(read.error()));
  REQUIRE(read);
  const Architecture& it = read.value();
  CHECK(it.name == "a");
  CHECK(it.serves.empty());  // `serves` is not inherited
  CHECK(it.values.at("x").constant == 2);
  CHECK(it.values.at("y").constant == 1);
  REQUIRE(it.tensors.size() == 2);
  CHECK(it.tensors[0].outputs[0].name.text() == "c");
  REQUIRE(it.metadata.size() == 3);  // a map that is extended along two paths is read once
  CHECK(it.metadata[0].key == "zero");
  CHECK(it.metadata[1].key == "one");
  CHECK(it.metadata[2].key == "two");
  CHECK(it.computed.size() == 1);
  CHECK(it.files.size() == 2);
}

TEST_CASE("errors in a map are reported with their location") {
  const std::pair<std::string, std::string> kCases[] = {
      {"nmae: x", "a.yaml:1:1: error: unknown key 'nmae'"},
      {"layers: n", "a.yaml: error: the map has no `name`"},
      {"name: x", "a.yaml: error: the map has no `layers`"},
      {"tensors: [{from: a, to: b, do: [pairhalves]}]", "a.yaml:1:33: error: unknown operation 'pairhalves'"},
      {"tensors: [{from: a, to: b, do: [pair_halves]}]", "a.yaml:1:33: error: pair_halves needs arguments"},
      {"tensors: [{from: a, to: b, do: [{part: [1, 2]}]}]", "a.yaml:1:40: error: part takes 3 arguments, not 2"},
      {"tensors: [{from: a}]",
       "a.yaml:1:11: error: expected `from` with one of `to`, `outputs`, and `drop`, or `together`"},
      {"tensors: [{from: [], to: b}]", "a.yaml:1:18: error: `from` must name at least one tensor"},
      {"tensors: [{from: a, to: b, zero: true}]", "a.yaml:1:11: error: `zero` requires `drop: true`"},
      {"tensors: [{from: '{layer}.{layer}', to: b}]",
       "a.yaml:1:18: error: '{layer}.{layer}' is not a valid tensor name"},
      {"tensors: [{from: '{block}', to: b}]", "a.yaml:1:18: error: '{block}' is not a valid tensor name"},
      {"tensors: [{together: [{to: b}]}]", "a.yaml:1:23: error: expected one of `stack`, `concat`, and `repack`"},
      {"tensors: [{together: [{to: b, concat: []}]}]", "a.yaml:1:39: error: `concat` must name at least one tensor"},
      {"tensors: [{together: [{to: b, stack: 'a.{expert}'}]}]",
       "a.yaml:1:23: error: `stack` needs `count`, and {expert} in its name"},
      {"tensors: [{together: [{to: b, repack: nvfp, of: [a, b]}]}]", "a.yaml:1:39: error: unknown repacking 'nvfp'"},
      {"tensors: [{from: a, to: b, do: [{join: [[rows]]}]}]",
       "a.yaml:1:33: error: `join` takes at least two lists of operations"},
      {"names: [{match: a}]", "a.yaml:1:9: error: expected `match` and `with`, or `drop`"},
      {"names: [{drop: '('}]", "a.yaml:1:18: error: "},
      {"computed: [{to: a, function: sums, of: [1]}]", "a.yaml:1:30: error: unknown operation 'sums'"},
      {"tokenizer: {special_tokens: [{role: bos, id: -1}]}", "a.yaml:1:46: error: '-1' is not 0 or more"},
      {"tokenizer: {special_tokens: [{role: bos, id: 4294967296}]}",
       "a.yaml:1:46: error: '4294967296' is not an integer from 0 to 2147483647"},
      {"values: {a: {nto: b}}", "a.yaml:1:14: error: unknown function 'nto'"},
      {"extends: ./a.yaml", "a.yaml:1:10: error: architecture 'a.yaml' extends itself through 'a.yaml'"},
      {"extends: lama", "a.yaml:1:10: error: unknown architecture 'lama'"},
      {"[1, 2]", "a.yaml:1:1: error: expected a map, found a list"},
  };
  for (const auto& [yaml, line] : kCases) {
    CAPTURE(yaml);
    CHECK(first_line(fault(yaml)).substr(0, line.size()) == line);
  }
  CHECK(fault("tensors: [{from: a, to: b, do: [pairhalves]}]").find("did you mean 'pair_halves'?") !=
        std::string::npos);
  CHECK(fault("nmae: x").find("did you mean 'name'?") != std::string::npos);
}

TEST_CASE("a map that many paths lead to is read once") {
  const TempDir folder;
  for (const char* link : {"s", "t"}) fs::create_directory_symlink(".", folder.file(link));
  constexpr int kLast = 25;  // 2^25 paths lead to it
  for (int i = 0; i < kLast; ++i) {
    const std::string next = std::to_string(i + 1) + ".yaml";
    write_text(folder.file(std::to_string(i) + ".yaml"), "extends: [./s/" + next + ", ./t/" + next + "]\n");
  }
  write_text(folder.file(std::to_string(kLast) + ".yaml"), "partial: true\nmetadata: [{key: a.b, value: 1}]\n");
  write_text(folder.file("0.yaml"), read_text(folder.file("0.yaml")) + "partial: true\n");
  const auto read = read_architecture(folder.file("0.yaml"));
  REQUIRE(read);
  CHECK(read.value().metadata.size() == 1);
}

TEST_CASE("a long chain of maps is an error") {
  const TempDir folder;
  for (int i = 0; i < 40; ++i)
    write_text(folder.file(std::to_string(i) + ".yaml"), "extends: ./" + std::to_string(i + 1) + ".yaml\n");
  const auto read = read_architecture(folder.file("0.yaml"));
  REQUIRE(!read);
  CHECK(read.error().what ==
        "the chain of extended architectures of '" + folder.file("0.yaml") + "' is longer than 32");
}
