// Paths that are long, that are not ASCII, or that are written with backslashes.

#include <fmt/format.h>

#include "pipeline/io/io.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

std::string model_bytes() {
  GgufBuilder model;
  model.tensors.push_back({"blk.0.ffn_down.weight", {256, 8}, "F32", std::string(256 * 8 * 4, '\x3c')});
  return model.build();
}

std::string long_folder(const TempDir& folder) {
  std::string path = folder.path();
  while (path.size() < 400) path += "/" + std::string(50, 'a');
  return path;
}

constexpr const char* kNames = "gr\u00fcn-\u043c\u043e\u0434\u0435\u043b\u044c-\u6a21\u578b-\U0001f999";

void check_quantize(const std::string& in, const std::string& out) {
  write_text(in, model_bytes());
  const ProcessResult result = run_process({GGUFMILL_PROGRAM, "quantize", in, out, "Q8_0"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(read_text(out).starts_with("GGUF"));
}

}  // namespace

TEST_CASE("paths of more than 260 characters can be read and written, and their folders are created") {
  const TempDir folder;
  const std::string deep = long_folder(folder);
  fs::create_directories(deep);
  check_quantize(deep + "/model.gguf", deep + "/new/folder/" + std::string(100, 'b') + "/out.gguf");
  CHECK(names_in(deep) == std::vector<std::string>{"model.gguf", "new"});
}

TEST_CASE("a relative path of more than 260 characters") {
  const TempDir folder;
  const std::string deep = long_folder(folder).substr(folder.path().string().size() + 1);
  fs::create_directories(folder.file(deep));
  write_text(folder.file(deep + "/model.gguf"), model_bytes());
  const ProcessResult result =
      run_process({GGUFMILL_PROGRAM, "quantize", deep + "/model.gguf", deep + "/out.gguf", "Q8_0"}, folder.path());
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(fs::exists(folder.file(deep + "/out.gguf")));
}

TEST_CASE("names in any script, as arguments, in a pipeline file, and in messages") {
  const TempDir folder;
  const std::string place = folder.file(kNames);
  fs::create_directory(place);
  check_quantize(place + "/model.gguf", place + "/" + kNames + ".gguf");
  write_text(place + "/job.yaml", fmt::format("version: 1\nsource: {{gguf: {0}/model.gguf}}\noutputs:\n"
                                              "  - {{gguf: {0}/{1}-2.gguf, quantize: {{type: Q4_0}}}}\n",
                                              place, kNames));
  const ProcessResult run = run_process({GGUFMILL_PROGRAM, "run", place + "/job.yaml"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(fs::exists(place + "/" + kNames + "-2.gguf"));
  const ProcessResult refused = run_process({GGUFMILL_PROGRAM, "run", place + "/job.yaml"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find(kNames) != std::string::npos);
}

TEST_CASE("paths with backslashes") {
  const TempDir folder;
  fs::create_directory(folder.file("in"));
  std::string in = folder.file("in/model.gguf"), out = folder.file("new/out.gguf");
  write_text(in, model_bytes());
  std::replace(in.begin(), in.end(), '/', '\\');
  std::replace(out.begin(), out.end(), '/', '\\');
  const ProcessResult result = run_process({GGUFMILL_PROGRAM, "quantize", in, out, "Q8_0"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(names_in(folder.file("new")) == std::vector<std::string>{"out.gguf"});
  const ProcessResult same = run_process({GGUFMILL_PROGRAM, "quantize", in, folder.file("in/model.gguf"), "Q8_0"});
  CHECK(same.exit_code == 2);
  CHECK(same.err.find("is the same file as the input") != std::string::npos);
}

TEST_CASE("wildcards find files in folders") {
  const TempDir folder;
  for (const char* name : {"a/x-1.gguf", "a/x-2.gguf", "b/x-3.gguf", "b/.hidden.gguf"}) {
    fs::create_directories(fs::path(folder.file(name)).parent_path());
    write_text(folder.file(name), "");
  }
  CHECK(paths_matching(folder.file("*/x-[12].gguf")) ==
        std::vector<std::string>{folder.file("a/x-1.gguf"), folder.file("a/x-2.gguf")});
  CHECK(paths_matching(folder.file("?/*.gguf"))->size() == 3);
  CHECK(matches_wildcards("*Q4_?", "model-Q4_0"));
  CHECK_FALSE(matches_wildcards("[!m]*", "model"));
  CHECK_FALSE(matches_wildcards("*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(200, 'a')));
}

TEST_CASE("names that Windows gives to devices, or does not allow, are not names of files") {
  for (const char* name : {"", ".", "..", "a/b", "a\\b", "c:x", "NUL", "con.txt", "LPT1", "a*", "a?", "a.", "a "}) {
    CAPTURE(name);
    CHECK_FALSE(is_file_name(name));
  }
  for (const char* name : {"a", "a.b", ".a", "console", "COM10", kNames}) CHECK(is_file_name(name));
}

TEST_CASE("parts of paths") {
  CHECK(fs::path("C:\\a\\b.c").filename() == "b.c");
  CHECK(fs::path("C:\\a\\b.c").parent_path() == "C:/a");
  CHECK(fs::path("C:/a").parent_path() == "C:/");
  CHECK(fs::path("C:/").parent_path() == "C:/");
  CHECK(fs::path("C:\\a/b").relative_path() == "a/b");
  CHECK(fs::path("a/b").relative_path() == "a/b");
  CHECK(fs::path("a").parent_path() == "");
  CHECK(fs::path("a/b/").parent_path() == "a/b");
  CHECK(fs::path("a.tar.gz").stem() == "a.tar");
  CHECK(fs::path(".a").extension() == "");
  CHECK(fs::path("a/b.x").replace_extension("y").string() == "a/b.y");
  CHECK((fs::path("hf://org/name") / "file").string() == "hf://org/name/file");
  CHECK((fs::path("a") / "C:/b").string() == "C:/b");
  CHECK((fs::path("C:/a") / "/b").string() == "C:/b");
  CHECK((fs::path("a\\") / "b").string() == "a\\b");
  CHECK(fs::path("C:\\a\\.\\b\\..\\c").lexically_normal().string() == "C:/a/c");
  CHECK(fs::path("../a/../..").lexically_normal().string() == "../..");
  CHECK(fs::path("a/..").lexically_normal().string() == ".");
  CHECK(fs::path("a/b/").lexically_normal().string() == "a/b/");
  CHECK(fs::path("C:\\a").is_absolute());
  CHECK(fs::path("\\\\server\\share").is_absolute());
  CHECK_FALSE(fs::path("C:a").is_absolute());
  CHECK(fs::path("a/b") < fs::path("a-b"));
  CHECK(name_begin("a\\b/c") == 4);
}
