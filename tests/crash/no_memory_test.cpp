// Simulates running out of memory in the program: whichever allocation fails, alone or with all later ones, the program
// either reports that there is no memory and exits with 75, or behaves as usual. Tests only a sample of the
// allocations; failing_memory.c can be used for the rest.

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

using Words = std::vector<std::string>;

class Program {
 public:
  Program() {
    GgufBuilder model;
    model.metadata.push_back({"general.architecture", metadata_string("llama")});
    for (int i = 0; i < 4; ++i) {
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 8});
      model.tensors.back().data = float_bytes(std::vector<float>(2048, 0.5F));
    }
    model.write(folder_.file("model.gguf"));
    write_text(folder_.file("job.yaml"),
               "version: 1\nmanifest: true\nsource: {gguf: model.gguf}\nlimits: {threads: 3}\n"
               "outputs: [{gguf: out/a.gguf, quantize: {recipe: Q4_K_M}}, {gguf: out/b.gguf}]\n");
  }

  ProcessResult run(const Words& words, const Words& settings = {}) const {
    Words all{GGUFMILL_BUILD_DIR "/bin/ggufmill"};
    all.insert(all.end(), words.begin(), words.end());
    return run_process(all, folder_.path().string(), settings);
  }
  // Removes the outputs of earlier runs first.
  ProcessResult run_with(const Words& words, Words settings) const {
    fs::remove_all(folder_.file("out"));
    settings.push_back("LD_PRELOAD=" GGUFMILL_FAILING_MEMORY);
    return run(words, settings);
  }
  long allocations(const Words& words) const {
    const std::string count = folder_.file("count");
    run_with(words, {"FAIL_COUNT=" + count});
    return std::atol(read_text(count).c_str());
  }
  std::map<std::string, std::string> outputs() const {
    std::map<std::string, std::string> files;
    std::error_code none;
    for (const std::string& name : fs::exists(folder_.file("out"), none) ? names_in(folder_.file("out")) : Words())
      if (!name.starts_with(".")) files[name] = read_text(folder_.file("out/" + name));
    return files;
  }

 private:
  TempDir folder_;
};

// Returns a sample of `count`: the first and last ones, and others at regular intervals.
std::set<long> sampled(long count) {
  constexpr long kEdge = 3, kBetween = 12;
  std::set<long> at;
  for (long i = 0; i < kEdge; ++i) at.insert({i, count - 1 - i});
  for (long i = 0; i < kBetween; ++i) at.insert(i * count / kBetween);
  return at;
}

void check_verb(const Words& words) {
  const Program program;
  const ProcessResult right = program.run_with(words, {});
  const auto outputs = program.outputs();
  const long count = program.allocations(words);
  REQUIRE(count > 0);
  for (const char* mode : {"once", "always"})
    for (const long at : sampled(count)) {
      CAPTURE(words, mode, at);
      const ProcessResult result =
          program.run_with(words, {fmt::format("FAIL_AT={}", at), fmt::format("FAIL_MODE={}", mode)});
      CAPTURE(result.err);
      if (result.exit_code == 75) continue;
      CHECK(result.exit_code == right.exit_code);  // the failed allocation was optional
      CHECK((program.outputs() == outputs));
    }
}

}  // namespace

TEST_CASE("without memory every verb ends with exit code 75") {
  check_verb(GENERATE(Words{"run", "job.yaml", "--quiet"}, Words{"plan", "job.yaml"}, Words{"status", "job.yaml"},
                      Words{"inspect", "model.gguf"}, Words{"verify", "model.gguf"},
                      Words{"compare", "model.gguf", "model.gguf"}, Words{"kernels"}, Words{"--help"}));
}
