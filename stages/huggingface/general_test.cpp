#include "stages/huggingface/general.h"
#include "pipeline/io/platform/filesystem.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
namespace {

// A checkpoint folder named "thing".
struct Checkpoint {
  TempDir parent;
  fs::path folder = parent.path() / "thing";
  GeneralOptions options{folder};
  std::string config = "{}";
  WeightCount weights;

  Checkpoint() { fs::create_directory(folder); }
  void write(const std::string& name, std::string_view text) { write_text(folder / name, text); }

  Result<General> read() const { return read_general(options, boost::json::parse(config).as_object(), weights); }

  // Returns "key=value" for every key except general.type, or the error without the folder's path.
  std::string shown() const {
    const auto general = read();
    std::string out;
    if (!general) {
      out = render(general.error());
    } else {
      for (const MetadataEntry& entry : general.value().metadata.entries()) {
        if (entry.key == "general.type") continue;
        out += fmt::format("{}{}={}", out.empty() ? "" : " ", entry.key.substr(8), describe(entry.value));
      }
      for (const std::string& warning : general.value().warnings) out += "\n" + warning;
    }
    for (std::size_t at; (at = out.find(folder.string())) != out.npos;) out.replace(at, folder.string().size(), "F");
    return out;
  }
};

std::string of_card(std::string_view card) {
  Checkpoint checkpoint;
  checkpoint.write("README.md", card);
  return checkpoint.shown();
}

}  // namespace

TEST_CASE("a bare folder is named after itself") {
  Checkpoint checkpoint;
  CHECK(checkpoint.shown() == R"(name="Thing")");
  checkpoint.weights.total = 1700000;
  CHECK(checkpoint.shown() == R"(name="Thing" size_label="1.7M")");
  checkpoint.options.folder += "/.";
  CHECK(checkpoint.shown() == R"(name="Thing" size_label="1.7M")");
  checkpoint.options.folder = checkpoint.folder / "x" / "..";
  fs::create_directory(checkpoint.folder / "x");
  CHECK(checkpoint.shown() == R"(name="Thing" size_label="1.7M")");
}

TEST_CASE("config.json names the model unless the name is a path") {
  Checkpoint checkpoint;
  checkpoint.config = R"({"_name_or_path": "some-org/Some-Model-7B-Chat-v0.3"})";
  CHECK(checkpoint.shown() ==
        R"(name="Some Model 7B Chat v0.3" version="v0.3" organization="Some Org" finetune="Chat" )"
        R"(basename="Some-Model" size_label="7B")");
  checkpoint.config = R"({"_name_or_path": "/home/me/Some-Model-7B"})";
  CHECK(checkpoint.shown() == R"(name="Thing")");
  checkpoint.config = R"({"_name_or_path": null})";
  CHECK(checkpoint.shown() == R"(name="Thing")");
  checkpoint.config = R"({"_name_or_path": 7})";
  CHECK(checkpoint.shown() == "F/config.json: error: '_name_or_path' is a number, not a string\n  help: quote it\n");
}

TEST_CASE("a model card gives the author and base models") {
  CHECK(of_card("---\nlicense: [mit, 'x']\nlicense_name: n\nlicense_link: l\nmodel_name: N\nauthor: A\n"
                "model_creator: B\nmodel_type: llama\nurl: u\nquantized_by: q\nversion: '2'\n"
                "pipeline_tag: p\ntags: [a, \"no\", 7b]\nlanguage:\n- en\n- no\n---\n") ==
        R"(name="N" author="A" version="2" basename="llama" license="mit,x" license.name="n" license.link="l" )"
        R"(source.url="u" tags=array of 4 string: "a", "no", "7b", "p" languages=array of 2 string: "en", "no")");
  CHECK(of_card("---\nbase_model:\n- mistralai/Mistral-7B-Instruct-v0.2\n"
                "- https://huggingface.co/NousResearch/Hermes-2-Pro-Mistral-7B\n- https://huggingface.co/a/b/c\n"
                "- ssh://huggingface.co/a/b\n- {name: n, doi: d, other: o}\n- 7\n"
                "datasets: allenai/c4\n---\n") ==
        R"(name="Thing" base_model.count=6 base_model.0.name="Mistral 7B Instruct v0.2" base_model.0.version="v0.2" )"
        R"(base_model.0.organization="Mistralai" )"
        R"(base_model.0.repo_url="https://huggingface.co/mistralai/Mistral-7B-Instruct-v0.2" )"
        R"(base_model.1.name="Hermes 2 Pro Mistral 7B" base_model.1.organization="NousResearch" )"
        R"(base_model.1.repo_url="https://huggingface.co/NousResearch/Hermes-2-Pro-Mistral-7B" )"
        R"(base_model.2.repo_url="https://huggingface.co/a/b/c" base_model.3.repo_url="ssh://huggingface.co/a/b" )"
        R"(base_model.4.name="n" base_model.4.doi="d" dataset.count=1 dataset.0.name="C4" )"
        R"(dataset.0.organization="Allenai" dataset.0.repo_url="https://huggingface.co/allenai/c4")"
        "\nF/README.md: a number in base models or datasets does not describe one");
  CHECK(of_card("---\nbase_model:\nbase_models: x/y\n---\n") == R"(name="Thing" base_model.count=0)");
}

TEST_CASE("scalars of a model card have the types of YAML 1.1") {
  CHECK(of_card("---\ntags: [1, 0x10, 010, 0b11, -1_000]\nlanguages: [1.5, .5, 1.e+3]\n---\n") ==
        R"(name="Thing" tags=array of 5 int32: 1, 16, 8, 3, -1000 languages=array of 3 float32: 1.5, 0.5, 1000)");
  CHECK(of_card("---\ntags: [yes, No, ON]\nauthor: 0\nversion: false\ndescription: []\n---\n") ==
        R"(name="Thing" tags=array of 3 bool: true, false, true)");
  CHECK(of_card("---\ntags: [2024-01-01, 1e3, '7', ''']\n---\n").find("error: ") != std::string::npos);
  CHECK(of_card("---\ntags: [2024-01-01, 1e3, '7', 1:30]\n---\n") ==
        R"(name="Thing" tags=array of 4 string: "2024-01-01", "1e3", "7", "1:30")");
}

TEST_CASE("a README.md without a card is ignored") {
  for (const char* text : {"", "# x\n", "--- \nname: x\n---\n", "\xef\xbb\xbf---\nname: x\n---\n", "---\n---\n",
                           "---\n", "---\n# nothing\n---\n"})
    CHECK(of_card(text) == R"(name="Thing")");
  CHECK(of_card("---\n- x\n---\n") ==
        "name=\"Thing\"\nF/README.md: the text between the --- lines is not a map; ignored");
  CHECK(of_card("---\r\nname: x\r\n---\r\n\xff\xfe") == R"(name="x")");
  CHECK(of_card("---\nname:\tx\nauthor: 'a\xe2\x80\xa8  b'\n---") == R"(name="x" author="a b")");
}

TEST_CASE("a model card that is malformed, or has a value no key can hold, is an error with its location") {
  CHECK(of_card("---\nname: x\ntags: [a\n---\n") ==
        "F/README.md:3:9: error: expected ',' or ']' here\n"
        "     3 | tags: [a\n"
        "       |         ^\n"
        "  help: close the list with ]; text that contains any of { } [ ] , : # must be in quotes\n");
  CHECK(of_card("---\nversion: 1.0\n---\n") ==
        "F/README.md: error: 'version' is a number, not a string\n  help: quote it\n");
  CHECK(of_card("---\nlanguage: [en, no]\n---\n") ==
        "F/README.md: error: 'languages' contains a boolean\n"
        "  help: quote every item: no and yes are booleans, 7 is a number\n");
  CHECK(of_card("---\nbase_model: {name: 7}\nbase_models: x\n---\n") == R"(name="Thing" base_model.count=0)");
  CHECK(of_card("---\nbase_model: [{name: 7}]\n---\n") ==
        "F/README.md: error: 'base_model[0].name' is a number, not a string\n  help: quote it\n");
}

TEST_CASE("generation_config.json gives sampling parameters, and a malformed one is ignored") {
  Checkpoint checkpoint;
  checkpoint.write("generation_config.json",
                   R"({"top_k": 20, "top_p": 0.95, "temperature": 1, "mirostat": true, "min_p": null, "x": 1})");
  CHECK(checkpoint.shown() ==
        R"(sampling.top_k=20 sampling.top_p=0.95 sampling.temp=1 sampling.mirostat=1 name="Thing")");
  checkpoint.write("generation_config.json", R"({"top_k": 20,})");
  CHECK(checkpoint.shown().find("name=\"Thing\"\nF/generation_config.json: not valid JSON: ") == 0);
  checkpoint.write("generation_config.json", R"({"top_k": 50.0})");
  CHECK(checkpoint.shown() == "F/generation_config.json: error: 'top_k' is a number, not a 32-bit integer\n");
  checkpoint.write("generation_config.json", R"({"top_p": 1e39})");
  CHECK(checkpoint.shown() == "F/generation_config.json: error: 'top_p' is a number, not a float32 number\n");
}

TEST_CASE("the repetition penalty has two names, of which llama.cpp's own comes first") {
  Checkpoint checkpoint;
  checkpoint.write("generation_config.json", R"({"repetition_penalty": 1.5})");
  CHECK(checkpoint.shown() == R"(sampling.penalty_repeat=1.5 name="Thing")");
  checkpoint.write("generation_config.json", R"({"repetition_penalty": 1.5, "penalty_repeat": 1.25})");
  CHECK(checkpoint.shown() == R"(sampling.penalty_repeat=1.25 name="Thing")");
  checkpoint.write("generation_config.json", R"({"repetition_penalty": 1.5, "penalty_repeat": null})");
  CHECK(checkpoint.shown() == R"(name="Thing")");
}

TEST_CASE("generation_config.json is read as Python reads it") {
  Checkpoint checkpoint;
  checkpoint.write("generation_config.json",
                   R"({"top_k": 1, "temperature": Infinity, "x": NaN, "y": "\ud800", "top_k": 2})");
  CHECK(checkpoint.shown() == R"(sampling.top_k=2 sampling.temp=inf name="Thing")");
  checkpoint.write("generation_config.json", "\xef\xbb\xbf{\"top_k\": 1}");  // Python rejects it
  CHECK(checkpoint.shown() ==
        "name=\"Thing\"\nF/generation_config.json: not valid JSON: it begins with a byte order mark; ignored");
  checkpoint.write("generation_config.json", std::string(70, '[') + std::string(70, ']'));
  CHECK(checkpoint.shown().starts_with(
      "F/generation_config.json: error: not valid JSON: nested more than 64 levels deep\n"));
  checkpoint.write("generation_config.json", "{\"x\": \"\xff\"}");
  CHECK(checkpoint.shown().starts_with("F/generation_config.json: error: not valid JSON: not UTF-8\n"));
}

TEST_CASE("an explicit name overrides a metadata file, which overrides everything else") {
  Checkpoint checkpoint;
  checkpoint.write("README.md", "---\nname: card\nauthor: card\nlicense: card\ntags: [card]\n---\n");
  checkpoint.write("m.json", R"({"general.author": "A", "general.tags": null, "general.quantized_by": "q",
    "general.sampling.top_k": 7, "general.base_models": [{"name": "n", "repo_url": "r"}], "general.license": "x"})");
  checkpoint.options.metadata_file = checkpoint.folder / "m.json";
  checkpoint.options.model_name = "given";
  CHECK(checkpoint.shown() ==
        R"(sampling.top_k=7 name="given" author="A" quantized_by="q" license="card" base_model.count=1 )"
        R"(base_model.0.name="n" base_model.0.repo_url="r")"
        "\nF/m.json: 'general.license' is not supported in this file; ignored");
  checkpoint.write("m.json", "[]");
  CHECK(checkpoint.shown() ==
        "F/m.json: error: expected an object, got a list\n  help: for example {\"general.author\": \"Somebody\"}\n");
  checkpoint.options.metadata_file = checkpoint.folder / "none.json";
  CHECK(checkpoint.read().error().code == ExitCode::kBadInput);
}

TEST_CASE("the output is named after the metadata found") {
  Checkpoint checkpoint;
  checkpoint.config = R"({"_name_or_path": "Some-Model-7B"})";
  checkpoint.write("README.md", "---\nfinetune: ''\nsize_label: 9B\n---\n");
  const ModelId id = checkpoint.read().value().id;
  CHECK(id.name == "Some Model 7B");
  CHECK(id.basename == "Some-Model");
  CHECK(id.finetune == "");
  CHECK(id.size_label == "9B");
  CHECK(!id.version);
}
