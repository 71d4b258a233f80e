// golden_files: every line of tests/golden/files.tsv by `ggufmill quantize`, and again by running what --emit-pipeline
// printed. Prints N of N; succeeds when nothing differs.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>

#include "pipeline/kernels/isa.h"
#include "tests/golden/file_case.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace ggufmill;
using namespace ggufmill::golden;

constexpr const char* kUsage =
    "usage: golden_files [--table FILE] [--only MODEL] [--isa NAME] [--once] GGUFMILL\n"
    "  --table FILE   the golden figures (tests/golden/files.tsv)\n"
    "  --only MODEL   the lines of this model\n"
    "  --isa NAME     with the kernels of this ISA alone ($GGUFMILL_TEST_ISA); skipped where the CPU lacks it\n"
    "  --once         by `ggufmill quantize` and not again by its pipeline file\n";

constexpr int kSkipped = 77;  // as ctest knows it

struct Options {
  std::string table = "tests/golden/files.tsv";
  std::string only;
  std::string isa;
  std::string program;
  bool once = false;
};

Options parse(int count, char** words) {
  Options options;
  if (const char* isa = std::getenv("GGUFMILL_TEST_ISA")) options.isa = isa;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--table" && i + 1 < count)
      options.table = words[++i];
    else if (word == "--only" && i + 1 < count)
      options.only = words[++i];
    else if (word == "--isa" && i + 1 < count)
      options.isa = words[++i];
    else if (word == "--once")
      options.once = true;
    else if (options.program.empty() && !word.starts_with("--"))
      options.program = std::filesystem::absolute(word);  // it runs in other folders
    else
      throw std::runtime_error(kUsage);
  }
  if (options.program.empty()) throw std::runtime_error(kUsage);
  return options;
}

struct Tally {
  std::size_t right = 0, cases = 0;
};

void check(FileCaseRunner& runner, const FileCase& file_case, Way way, Tally& tally) {
  const std::string wrong = runner.run(file_case, way);
  ++tally.cases;
  if (wrong.empty())
    ++tally.right;
  else
    fmt::print(stderr, "{}{}: {}\n", describe(file_case), way == Way::kPipeline ? ", as a pipeline file" : "", wrong);
}

// What the ISA asks for and this machine lacks.
std::string missing(const std::string& name) {
  const Isa* isa = find_isa(name);
  return isa ? fmt::format("{}", fmt::join(missing_features(isa->cpu_features, cpu_features()), " ")) : "";
}

int run(const Options& options) {
  if (const std::string lacking = missing(options.isa); !lacking.empty()) {
    fmt::print("files: {} skipped, this machine lacks {}\n", options.isa, lacking);
    return kSkipped;
  }
  const TempDir folder;
  FileCaseRunner runner(options.program, options.isa, folder.path());
  Tally by_quantize, by_pipeline;
  for (const FileCase& file_case : load_file_cases(options.table)) {
    if (!options.only.empty() && options.only != file_case.model) continue;
    check(runner, file_case, Way::kQuantize, by_quantize);
    if (!options.once) check(runner, file_case, Way::kPipeline, by_pipeline);
  }
  const Tally all{by_quantize.right + by_pipeline.right, by_quantize.cases + by_pipeline.cases};
  fmt::print("files{}: {} of {} (by quantize {} of {}, by its pipeline file {} of {})\n",
             options.isa.empty() ? "" : " by the kernels of " + options.isa, all.right, all.cases, by_quantize.right,
             by_quantize.cases, by_pipeline.right, by_pipeline.cases);
  return all.cases > 0 && all.right == all.cases ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(parse(count, words));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
