// Files that are made again from their attestation, in another folder than the one that it was written in.

#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/llama_scripts.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Two folders: "made" has a model, an importance file and a job, and is the current one.
class TwoFolders {
 public:
  TwoFolders() {
    ::setenv("GGUFMILL_CACHE", folder_.file("cache").c_str(), 1);
    fs::create_directory(made());
    fs::create_directory(folder_.file("other"));
    fs::current_path(made());
    GgufBuilder model;
    model.add_tensor("token_embd.weight", {256, 40}).add_tensor("blk.0.ffn_down.weight", {256, 33});
    for (auto& tensor : model.tensors) tensor.data = float_bytes(std::vector<float>(tensor.data.size() / 4, 0.5F));
    model.write("model.gguf");
    GgufBuilder importance = gguf_importance();
    add_entry(importance, "blk.0.ffn_down.weight", std::vector<float>(256, 1), {1});
    importance.write("prepared.gguf");
    write_text("text.txt", std::string(2000, 'a'));
    write_text("imatrix", fmt::format(fmt::runtime(kImatrix), ":"));
    fs::permissions("imatrix", fs::perms::owner_all);
  }
  ~TwoFolders() { fs::current_path("/"); }
  TwoFolders(const TwoFolders&) = delete;
  TwoFolders& operator=(const TwoFolders&) = delete;

  std::string made() const { return folder_.file("made"); }

  static ProcessResult ggufmill(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GGUFMILL_PROGRAM);
    return run_process(arguments);
  }
  // Runs a job with an attestation.
  void run(const std::string& stages, const std::string& outputs) const {
    write_text("job.yaml", fmt::format("version: 1\nsource: {{gguf: '{}/model.gguf'}}\nstages: [{}]\noutputs: [{}]\n"
                                       "attestation: {{path: made.json}}\n",
                                       made(), stages, outputs));
    const ProcessResult ran = ggufmill({"run", "-q", "job.yaml", "--overwrite"});
    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 0);
  }
  // Makes the files again in the other folder.
  ProcessResult reproduce() const {
    fs::current_path(folder_.file("other"));
    ProcessResult again = ggufmill({"reproduce", made() + "/made.json", "--sources", made(), "-o", "again"});
    fs::current_path(made());
    return again;
  }

 private:
  TempDir folder_;
};

}  // namespace

TEST_CASE("files that record the path of an importance matrix are reproduced") {
  const TwoFolders folders;
  SECTION("of an absolute path") {
    folders.run(fmt::format("importance: {{file: '{}/prepared.gguf'}}", folders.made()),
                "{gguf: a.gguf, quantize: IQ2_XS}");
    CHECK(read_text("a.gguf").find(folders.made() + "/prepared.gguf") != std::string::npos);
  }
  SECTION("of a relative one") { folders.run("importance: {file: prepared.gguf}", "{gguf: a.gguf, quantize: Q4_K}"); }
  SECTION("of several") {
    fs::copy_file("prepared.gguf", "second.gguf");
    folders.run(
        fmt::format("importance: {{files: [{{path: prepared.gguf, weight: 2}}, '{}/second.gguf']}}", folders.made()),
        "{gguf: a.gguf, quantize: Q4_K}");
  }
  SECTION("that was computed, and is in shards") {
    folders.run(fmt::format("importance: {{compute: {{program: ./imatrix, text: text.txt, chunks: 2, file: "
                            "'{}/out/imatrix.gguf', options: [--in-file, '{}/more']}}}}",
                            folders.made(), folders.made()),
                "{gguf: base.gguf}, {gguf: {path: a.gguf, shard_size: 4K}, quantize: IQ2_XS}");
    CHECK(read_text("made.json").find("/more") == std::string::npos);
    fs::copy_file("out/imatrix.gguf", "imatrix.gguf");  // its name in the attestation
  }
  SECTION("whose key the job replaces") {
    folders.run(fmt::format("importance: {{file: '{}/prepared.gguf'}}", folders.made()),
                "{gguf: a.gguf, quantize: Q4_K, metadata: {set: {quantize.imatrix.file: mine}}}");
  }
  const ProcessResult again = folders.reproduce();
  CAPTURE(again.out, again.err);
  CHECK(again.exit_code == 0);
  CHECK(again.out.find("differs") == std::string::npos);
}

TEST_CASE("an earlier output that a job has reused is not needed to reproduce its files") {
  const TwoFolders folders;
  folders.run("", "{gguf: earlier.gguf, quantize: Q4_K}");
  folders.run("", "{gguf: a.gguf, quantize: Q4_K, reuse: earlier.gguf}");
  CHECK(read_text("made.json").find("earlier") == std::string::npos);
  fs::remove("earlier.gguf");
  const ProcessResult again = folders.reproduce();
  CAPTURE(again.out, again.err);
  CHECK(again.exit_code == 0);
}

TEST_CASE("the first key or tensor that differs is named") {
  const TwoFolders folders;
  folders.run("", "{gguf: a.gguf, quantize: Q4_K, metadata: {set: {general.author: somebody}}}");
  std::string text = read_text("made.json");
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != text.npos);
    text.replace(at, from.size(), to);
  };
  const std::string sum = read_text("a.gguf.sha256").substr(0, 64);
  replace(sum, std::string(64, '0'));
  std::string message = "'a.gguf' differs in no key and no tensor";
  SECTION("a key") {
    replace("somebody", "nobody");
    message = "'a.gguf' differs, first in the key 'general.author'";
  }
  SECTION("a tensor") {
    const std::size_t at = text.find("\"blk.0.ffn_down.weight\":\"") + 25;
    text.replace(at, 4, text.substr(at, 4) == "0000" ? "1111" : "0000");
    message = "'a.gguf' differs, first in the tensor 'blk.0.ffn_down.weight'";
  }
  SECTION("neither") {}
  write_text("made.json", text);
  const ProcessResult again = folders.reproduce();
  CAPTURE(again.out, again.err);
  CHECK(again.exit_code == 3);
  CHECK(again.err.find(message) != std::string::npos);
}
