#include "pipeline/io/gguf_files.h"

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Names = std::vector<std::string>;

class Folder {
 public:
  explicit Folder(const Names& names) {
    for (const std::string& name : names) {
      fs::create_directories(fs::path(folder_.file(name)).parent_path());
      write_text(folder_.file(name), "1234");
    }
  }
  std::string path(const std::string& name = "") const {
    return name.empty() ? folder_.path().string() : folder_.file(name);
  }
  Names found() const {
    Names names;
    for (const GgufFile& file : gguf_files_in(path())) names.push_back(file.path.substr(path().size() + 1));
    return names;
  }

 private:
  TempDir folder_;
};

}  // namespace

TEST_CASE("models are found in a folder and in a folder for each type, but no projectors beside them") {
  CHECK(Folder({"a-BF16.gguf", "mmproj-a-F16.gguf", "imatrix.gguf", "README.md"}).found() == Names{"a-BF16.gguf"});
  CHECK(Folder({"BF16/a-BF16.gguf", "Q8_0/a-Q8_0.gguf"}).found() == Names{"BF16/a-BF16.gguf", "Q8_0/a-Q8_0.gguf"});
  CHECK(Folder({"mmproj-a-F16.gguf"}).found() == Names{"mmproj-a-F16.gguf"});
  CHECK(Folder({".git/a.gguf", "notes.txt"}).found().empty());
}

TEST_CASE("the shards of a model are one, and known by the first") {
  const Folder folder({"a-00001-of-00002.gguf", "a-00002-of-00002.gguf"});
  CHECK(only_gguf_in(folder.path()).value() == folder.path("a-00001-of-00002.gguf"));
  CHECK(gguf_files_in(folder.path()).front().shards.size() == 2);
}

TEST_CASE("in the hub's cache, the snapshot of the main branch counts") {
  Names names{"snapshots/1111/a.gguf", "snapshots/2222/a.gguf"};
  CHECK(Folder(names).found().size() == 2);
  const Folder folder(names);
  fs::create_directories(folder.path("refs"));
  write_text(folder.path("refs/main"), "2222");
  CHECK(folder.found() == Names{"snapshots/2222/a.gguf"});
}

TEST_CASE("several models are an error that lists them with their sizes") {
  const Folder folder({"a-BF16.gguf", "a-F32.gguf"});
  const auto one = only_gguf_in(folder.path());
  REQUIRE_FALSE(one);
  CHECK(one.error().code == ExitCode::kBadInput);
  CHECK(one.error().what == "the folder contains 2 models");
  CHECK(one.error().detail == folder.path("a-BF16.gguf") + "  4 B\n" + folder.path("a-F32.gguf") + "  4 B");
  CHECK(one.error().help == "give one of them, such as " + folder.path("a-BF16.gguf"));
}

TEST_CASE("a folder with weights of a checkpoint does not hold GGUF files only") {
  CHECK(holds_only_gguf(Folder({"a.gguf", "config.json"}).path()));
  CHECK_FALSE(holds_only_gguf(Folder({"a.gguf", "model.safetensors"}).path()));
  CHECK_FALSE(holds_only_gguf(Folder({"config.json"}).path()));
}

TEST_CASE("a type selects a file as llama.cpp does") {
  const Names names{"BF16/a-BF16-00001-of-00002.gguf",
                    "BF16/a-BF16-00002-of-00002.gguf",
                    "a-Q4_K_M.gguf",
                    "a-Q4_K_S.gguf",
                    "a.q8_0.gguf",
                    "mmproj-a-Q6_K.gguf"};
  CHECK(gguf_of_type(names, "q4_k_m") == "a-Q4_K_M.gguf");
  CHECK(gguf_of_type(names, "Q4_K_S") == "a-Q4_K_S.gguf");
  CHECK(gguf_of_type(names, "Q8_0") == "a.q8_0.gguf");
  CHECK(gguf_of_type(names, "BF16") == "BF16/a-BF16-00001-of-00002.gguf");
  CHECK_FALSE(gguf_of_type(names, "Q6_K"));
  CHECK_FALSE(gguf_of_type(names, "Q4_K"));
  CHECK(type_in_address("hf://org/name:Q4_K_M") == "Q4_K_M");
  CHECK(type_in_address("hf://org/name@main/a.gguf").empty());
  CHECK(type_in_address("C:/models").empty());
}
