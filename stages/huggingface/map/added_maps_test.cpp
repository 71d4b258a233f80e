// Tests of maps that users add to the built-in ones.
#include "stages/huggingface/map/added_maps.h"

#include <boost/json/parse.hpp>
#include <memory>

#include "pipeline/io/platform/system.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

constexpr const char* kMine = "name: mine\nlayers: 1\nserves: [MineForCausalLM]\n";

// A folder of maps, and the maps that it adds.
class Folder {
 public:
  Folder& put(const std::string& name, const std::string& text) {
    write_text(path(name), text);
    return *this;
  }
  std::string path(const std::string& name = {}) const {
    return name.empty() ? folder_->path().string() : folder_->file(name);
  }
  AddedMaps maps() const {
    auto read = AddedMaps::read(map_places({path()}));
    CAPTURE(read ? "" : render(read.error()));
    REQUIRE(read);
    return std::move(read).value();
  }
  // The error, without the folder's path.
  std::string fault() const { return fault_of({path()}); }
  std::string fault_of(const std::vector<std::string>& paths) const {
    const auto read = AddedMaps::read(map_places(paths));
    return read ? "" : without_path(render(read.error()));
  }
  std::string without_path(std::string text) const {
    for (std::size_t at; (at = text.find(path())) != std::string::npos;) text.replace(at, path().size(), "DIR");
    return text;
  }

 private:
  std::shared_ptr<const TempDir> folder_ = std::make_shared<TempDir>();  // copies share it
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string kHash(64, 'a');

}  // namespace

TEST_CASE("an added map serves a class that no built-in map serves") {
  const Folder folder = Folder().put("mine.yaml", kMine);
  const AddedMaps maps = folder.maps();
  const auto found = find_architecture("MineForCausalLM", "config.json", ModelPart::kText, maps);
  REQUIRE(found);
  CHECK(found.value().name == "mine");
  CHECK(found.value().files == std::vector<std::string>{folder.path("mine.yaml")});
  CHECK(!find_architecture("MineForCausalLM", "config.json"));
}

TEST_CASE("an added map is found by its name, and by its file alone") {
  const Folder folder = Folder().put("mine.yaml", kMine);
  const auto alone = AddedMaps::read(map_places({folder.path("mine.yaml")}));
  REQUIRE(alone);
  CHECK(read_architecture("mine", {}, folder.maps()).value().name == "mine");
  CHECK(read_architecture("mine", {}, alone.value()).value().name == "mine");
}

TEST_CASE("an added map takes precedence over the built-in one for its class and its name") {
  const Folder folder =
      Folder().put("llama.yaml", "extends: llama\nname: other\nserves: [LlamaForCausalLM]\nvalues: {mine: 1}\n");
  const AddedMaps maps = folder.maps();
  const auto found = find_architecture("LlamaForCausalLM", "config.json", ModelPart::kText, maps);
  CAPTURE(found ? "" : render(found.error()));
  REQUIRE(found);  // it extends the built-in map of its name
  CHECK(found.value().name == "other");
  CHECK(!found.value().tensors.empty());
  CHECK(read_architecture("llama", {}, maps).value().name == "other");
  CHECK(built_in_map_for("LlamaForCausalLM", ModelPart::kText).value() == "llama");
  CHECK(built_in_map_for("MineForCausalLM", ModelPart::kText).value().empty());
}

TEST_CASE("built-in maps extend built-in maps, whatever is added") {
  const Folder folder = Folder().put("llama.yaml", "extends: llama\nname: other\nvalues: {mine: 1}\n");
  const auto granite = find_architecture("GraniteForCausalLM", "config.json", ModelPart::kText, folder.maps());
  REQUIRE(granite);
  CHECK(granite.value().values.count("mine") == 0);
}

TEST_CASE("added maps extend each other by name") {
  const Folder folder =
      Folder().put("base.yaml", "partial: true\nlayers: 1\n").put("mine.yaml", "extends: base\nname: m\n");
  CHECK(read_architecture("mine", {}, folder.maps()).value().files.size() == 2);
}

TEST_CASE("a text model and a projector of one class are different maps") {
  const Folder folder =
      Folder()
          .put("mine.yaml", kMine)
          .put("mine-clip.yaml", "name: clip\nlayers: 1\npart: projector\nserves: [MineForCausalLM]\n");
  const AddedMaps maps = folder.maps();
  CHECK(find_architecture("MineForCausalLM", "", ModelPart::kText, maps).value().name == "mine");
  CHECK(find_architecture("MineForCausalLM", "", ModelPart::kProjector, maps).value().name == "clip");
}

TEST_CASE("two maps of one folder that serve a class are an error") {
  const Folder folder = Folder().put("mine.yaml", kMine).put("more.yaml", kMine);
  const auto found = find_architecture("MineForCausalLM", "", ModelPart::kText, folder.maps());
  REQUIRE(!found);
  CHECK(folder.without_path(render(found.error())) ==
        "DIR/more.yaml: error: serves 'MineForCausalLM', as DIR/mine.yaml does\n"
        "  help: remove the class from `serves` in one of them\n");
}

TEST_CASE("the maps of the first place take precedence") {
  const Folder first = Folder().put("mine.yaml", kMine),
               second = Folder()
                            .put("mine.yaml", "name: second\nlayers: 1\n")
                            .put("more.yaml", "name: second\nlayers: 1\nserves: [MineForCausalLM]\n");
  const auto maps = AddedMaps::read(map_places({first.path(), second.path()}));
  REQUIRE(maps);
  CHECK(find_architecture("MineForCausalLM", "", ModelPart::kText, maps.value()).value().name == "mine");
  CHECK(read_architecture("mine", {}, maps.value()).value().name == "mine");
}

TEST_CASE("the places of the environment come last") {
  const Folder first = Folder().put("mine.yaml", kMine),
               second = Folder().put("mine.yaml", "name: second\nlayers: 1\n").put("more.yaml", "name: n\nlayers: 1\n");
  const std::string paths = std::string(1, kPathListSeparator) + second.path() + kPathListSeparator;
  const Environment environment(kMapsVariable, paths.c_str());
  const auto maps = AddedMaps::read(map_places({first.path()}));
  REQUIRE(maps);
  CHECK(read_architecture("mine", {}, maps.value()).value().name == "mine");
  CHECK(read_architecture("more", {}, maps.value()).value().name == "n");
}

TEST_CASE("an error in the environment names the variable") {
  const Environment environment(kMapsVariable, "/no/such/folder");
  const auto maps = AddedMaps::read({});
  REQUIRE(!maps);
  CHECK(maps.error().where == "$GGUFMILL_ARCHITECTURES");
  CHECK(maps.error().what == "'/no/such/folder' does not exist");
}

TEST_CASE("added maps claim the class of the whole model") {
  const Folder folder =
      Folder().put("mine.yaml", "name: m\nlayers: 1\nserves: [WholeModel]\nserves_whole: [WholeModel]\n");
  const auto config = boost::json::parse(
      R"({"architectures": ["WholeModel"], "text_config": {"architectures": ["Qwen3ForCausalLM"]}})");
  CHECK(class_to_convert(config.as_object(), folder.maps()).value() == "WholeModel");
  CHECK(class_to_convert(config.as_object()).value() == "Qwen3ForCausalLM");
}

TEST_CASE("added maps serve configurations without a class") {
  const Folder folder = Folder().put("mine.yaml", "name: m\nlayers: 1\nserves_when: has_mine\n");
  const auto config = boost::json::parse(R"({"has_mine": true})").as_object();
  CHECK(find_architecture_without_class(".", "config.json", config, folder.maps()).value().name == "m");
}

TEST_CASE("the error for an unknown class lists what the added maps serve") {
  const Folder folder = Folder().put("mine.yaml", kMine);
  const auto found = find_architecture("ThineForCausalLM", "config.json", ModelPart::kText, folder.maps());
  REQUIRE(!found);
  CHECK(has(folder.without_path(found.error().detail), "DIR/mine.yaml serves 'MineForCausalLM'"));
}

TEST_CASE("hashes of pre-tokenizers are in a map, which inherits them, or in a table") {
  const Folder folder = Folder()
                            .put("base.yaml", "partial: true\nlayers: 1\npre_tokenizers: {" + kHash + ": one}\n")
                            .put("mine.yaml", "extends: base\nname: m\n")
                            .put("pre_tokenizers.tsv", "# comment\nhash\tpre\trepository\n" + kHash + "\ttwo\torg/x\n");
  const AddedMaps maps = folder.maps();
  CHECK(read_architecture("mine", {}, maps).value().pre_tokenizers.at(kHash) == "one");
  CHECK(maps.pre_tokenizers().at(kHash) == "two");
  CHECK(maps.tables() == std::vector<std::string>{folder.path("pre_tokenizers.tsv")});
}

TEST_CASE("all errors in added files are reported with their places") {
  const Folder folder = Folder()
                            .put("a.yaml", "nmae: x\n")
                            .put("b.yaml", "name: b\npre_tokenizers:\n  abc: one\n")
                            .put("pre_tokenizers.tsv", "hash\tpre\n" + kHash + "\tone\nabc\ttwo\n");
  const std::string fault = folder.fault_of({folder.path()});
  CHECK(has(fault, "DIR/a.yaml:1:1: error: unknown key 'nmae'"));
  const auto read = AddedMaps::read(map_places({folder.path()}));
  REQUIRE(!read);
  REQUIRE(read.error().also.size() == 2);
  CHECK(has(folder.without_path(render(read.error().also[0])),
            "DIR/b.yaml:3:3: error: 'abc' is not a SHA-256 in 64 lowercase hexadecimal digits"));
  CHECK(has(folder.without_path(render(read.error().also[1])),
            "DIR/pre_tokenizers.tsv:3: error: expected a SHA-256 in 64 lowercase hexadecimal digits, a tab"));
}

TEST_CASE("a table without the names of its columns is an error, not an empty table") {
  for (const std::string& text : {kHash + "\ttwo\n", std::string("# comment\n")}) {
    const Folder folder = Folder().put("pre_tokenizers.tsv", text);
    CHECK(has(folder.fault_of({folder.path()}), "must have the names of the columns"));
  }
}

TEST_CASE("places that have no maps are errors") {
  const Folder folder;
  fs::create_directory(folder.path("empty"));
  CHECK(has(folder.fault_of({folder.path("none")}), "error: 'DIR/none' does not exist"));
  CHECK(has(folder.fault_of({folder.path("empty")}),
            "error: the folder 'DIR/empty' has no architecture maps (*.yaml) and no pre_tokenizers.tsv"));
  CHECK(has(folder.fault_of({"hf://org/maps"}), "error: architecture maps at the address 'hf://org/maps'"));
}

TEST_CASE("the number of added maps is limited") {
  Folder folder;
  for (std::size_t i = 0; i <= AddedMaps::kMaxFiles; ++i) folder.put(std::to_string(i) + ".yaml", "name: m\n");
  CHECK(has(folder.fault(), "error: more than 256 files or "));
}

TEST_CASE("an added map can recognize a checkpoint by the files in its folder, before a built-in one does") {
  const TempDir checkpoint;
  for (const char* const file : {"config.json", "helper/shim.py", "mine.json"}) {
    fs::create_directories(fs::path(checkpoint.file(file)).parent_path());
    write_text(checkpoint.file(file), "{}");
  }
  const Folder folder = Folder().put("mine.yaml",
                                     "name: m\nlayers: 1\nserves: [Mine]\nconfig: mine.json\n"
                                     "serves_folder_when: {has_file: \"mine.json\"}\n");
  const auto found = marked_folder(checkpoint.path(), folder.maps());
  REQUIRE(found);
  REQUIRE(found.value());
  CHECK(found.value()->checkpoint_class == "Mine");
  CHECK(found.value()->config == "mine.json");
}
