// configs/publish.yaml as it stands, with the real llama-imatrix and llama-perplexity of the folder $LLAMA_BIN: whether
// they still print and write what the program expects.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <map>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

// The job with three recipes, on a small trained checkpoint.
class Evening {
 public:
  explicit Evening(const fs::path& real) {
    const std::string bin = std::getenv("LLAMA_BIN"), text = real / "tiny-trained-eval.txt";
    words_ = {GGUFMILL_PROGRAM, "run", fs::absolute("configs/publish.yaml"), "--set",
              "matrix.recipes=[Q4_K_M, IQ2_XS, Q8_0]"};
    for (const auto& [name, value] : std::map<std::string, std::string>{{"CHECKPOINT", real / "tiny-trained-hf"},
                                                                        {"TEXT", text},
                                                                        {"EVAL", text},
                                                                        {"CHUNKS", "4"},
                                                                        {"IMATRIX", bin + "/llama-imatrix"},
                                                                        {"PERPLEXITY", bin + "/llama-perplexity"}})
      words_.insert(words_.end(), {"--param", name + "=" + value});
    settings_ = {"GGUFMILL_CACHE=" + folder_.file("cache"), "LD_LIBRARY_PATH=" + bin};
  }

  ProcessResult run(const std::vector<std::string>& before = {}) const {
    std::vector<std::string> all = before;
    all.insert(all.end(), words_.begin(), words_.end());
    return run_process(all, folder_.path(), settings_);
  }
  // Returns the bytes of the outputs and of what describes them, except for manifests, which have times.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> files;
    for (const std::string& name : names_in(folder_.file("out")))
      if (!name.ends_with(".manifest.json")) files[name] = read_text(folder_.file("out/" + name));
    return files;
  }

 private:
  TempDir folder_;
  std::vector<std::string> words_, settings_;
};

}  // namespace

TEST_CASE("a job to publish runs with the real programs of llama.cpp, and resumes") {
  if (std::getenv("LLAMA_BIN") == nullptr) GGUFMILL_SKIP("LLAMA_BIN names no folder with programs of llama.cpp");
  const auto shared = unversioned_data();
  if (!shared || !fs::exists(*shared / "real")) GGUFMILL_SKIP("no larger golden data");
  const fs::path real = fs::absolute(*shared / "real");
  const Evening whole(real);
  const ProcessResult result = whole.run();
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const auto files = whole.files();
  const boost::json::value quality = boost::json::parse(files.at("quality.json"));
  std::map<std::string, double> divergence;
  for (const boost::json::value& output : quality.at("outputs").as_array()) {
    const std::string path(output.at("path").as_string());
    divergence[path.substr(path.rfind('-') + 1)] = output.at("divergence").as_double();
  }
  CHECK(divergence.at("Q8_0.gguf") > 0);
  CHECK(divergence.at("Q8_0.gguf") < divergence.at("Q4_K_M.gguf"));
  CHECK(divergence.at("Q4_K_M.gguf") < divergence.at("IQ2_XS.gguf"));

  const Evening killed(real);
  int kills = 0;
  for (double seconds = 0.4; seconds < 20; seconds *= 1.5, ++kills)
    if (killed.run({"/usr/bin/timeout", "--foreground", "-s", "KILL", fmt::format("{:.2f}", seconds)}).exit_code != 137)
      break;
  CHECK(kills > 0);
  CHECK(killed.run().exit_code == 0);
  auto again = killed.files();
  CHECK(again.size() == files.size());
  for (const auto& [name, bytes] : files) {
    CAPTURE(name);
    const bool same = again[name] == bytes;
    CHECK(same);
  }
}
