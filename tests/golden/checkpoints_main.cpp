// golden_checkpoints: every line of ../shared/hf/expected.tsv and of tests/golden/checkpoints/expected.tsv (whose
// tokenizers are those of ../shared, too) by `ggufmill convert`, the names of its outputs included, and every refused
// checkpoint. Prints N of N; succeeds when nothing differs. Skipped, with a line, without ../shared.

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/sample.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

namespace {

using namespace ggufmill;
namespace fs = std::filesystem;
namespace json = boost::json;

constexpr int kSkipped = 77;  // as ctest knows it

// Checkpoints that the reference refuses, or converts by accident, and this program does not have to.
const std::map<std::string, std::string> kOtherwise{
    {"fused-experts", "gates and ups of experts become one tensor for every architecture"},
    {"gpt2-mask-buffer", "a buffer of old checkpoints is left out"},
    {"quant-method", "AWQ is known"},
    {"stablelm-qk-norms", "norms of heads are stacked"},
    {"unknown-dtype", "U16 is known"},
};

// Runs of which the reference writes infinities, since values are too large for the type, and which are refused here.
const std::map<std::string, std::set<std::string>> kTooLarge{{"llama-dtypes", {"auto", "bf16", "f16"}}};

struct Run {
  std::string name, type, arguments;
  std::map<std::string, std::string> outputs;  // digest by name
};

std::vector<std::string> words_of(const json::value& run, const fs::path& folder) {
  std::vector<std::string> words;
  for (const json::value& argument : run.at("args").as_array()) {
    std::string word = argument.as_string().c_str();
    if (const std::size_t at = word.find("{folder}"); at != std::string::npos) word.replace(at, 8, folder.string());
    words.push_back(word);
  }
  return words;
}

class Checker {
 public:
  Checker(std::string program, fs::path hf) : program_(std::move(program)), hf_(std::move(hf)) {}

  // The lines of `table`, whose cases are made of the specs in `specs`.
  void check_expected(const fs::path& table, const fs::path& specs) {
    std::map<std::string, std::map<std::string, std::map<std::string, std::string>>> cases;  // case, run, output
    for (const std::vector<std::string>& row : read_tsv(table).rows) cases[row[0]][row[1]][row[6]] = row[8];
    for (const auto& [name, runs] : cases) {
      if (!is_in_sample(case_++)) continue;
      const json::value spec = json::parse(read_text(specs / (name + ".json")));
      const TempDir parent;
      const fs::path folder = make_checkpoint(hf_, spec, parent.path());
      for (const json::value& run : spec.at("runs").as_array())
        check_run(name, run, folder, runs.at(run.at("label").as_string().c_str()));
    }
  }

  void check_refused() {
    for (const std::vector<std::string>& row : read_tsv(hf_ / "refused.tsv").rows) {
      if (row[3] == "0" || kOtherwise.contains(row[0])) continue;
      const json::value spec = json::parse(read_text(hf_ / "refused" / (row[0] + ".json")));
      const TempDir parent, out;
      const fs::path folder = make_checkpoint(hf_, spec, parent.path());
      const ProcessResult result =
          run_process({program_, "convert", folder, "--outfile", out.path(), "--outtype", row[1]}, out.path());
      ++refusals_;
      const bool good = result.exit_code != 0 && result.exit_code < 100 &&
                        result.err.find("error: ") != result.err.npos && names_in(out.path()).empty();
      right_refusals_ += good;
      if (!good) fmt::print(stderr, "{} is not refused: {} {}\n", row[0], result.exit_code, result.err);
    }
  }

  int tell() const {
    fmt::print("checkpoints: {} of {} outputs, {} of {} refused\n", right_, outputs_, right_refusals_, refusals_);
    return outputs_ > 0 && right_ == outputs_ && right_refusals_ == refusals_ ? 0 : 1;
  }

 private:
  void check_run(const std::string& name, const json::value& run, const fs::path& folder,
                 const std::map<std::string, std::string>& expected) {
    const TempDir out;
    std::vector<std::string> words{
        program_, "convert", folder, "--outfile", out.path(), "--outtype", run.at("outtype").as_string().c_str()};
    for (std::string& word : words_of(run, folder)) words.push_back(std::move(word));
    const ProcessResult result = run_process(words, out.path());
    if (const auto runs = kTooLarge.find(name);
        runs != kTooLarge.end() && runs->second.contains(run.at("label").as_string().c_str())) {
      ++refusals_;
      const bool good = result.exit_code == 4 && result.err.find("a value is too large for") != result.err.npos;
      right_refusals_ += good;
      if (!good) fmt::print(stderr, "{}: values that are too large are not refused: {}\n", name, result.err);
      return;
    }
    for (const auto& [file, digest] : expected) {
      ++outputs_;
      const fs::path path = out.path() / file;
      const bool right = fs::exists(path) && sha256_file(path) == digest;
      right_ += right;
      if (!right)
        fmt::print(stderr, "{} {}: {} {}\n{}", name, run.at("label").as_string().c_str(), file,
                   fs::exists(path) ? "differs" : "is not there", result.err);
    }
  }

  std::string program_;
  fs::path hf_;
  std::size_t case_ = 0, outputs_ = 0, right_ = 0, refusals_ = 0, right_refusals_ = 0;
};

}  // namespace

int main(int count, char** words) {
  try {
    if (count != 2) throw std::runtime_error("usage: golden_checkpoints GGUFMILL");
    const auto shared = shared_data();
    if (!shared || !fs::exists(*shared / "hf")) {
      fmt::print("checkpoints: skipped, there is no ../shared/hf\n");
      return kSkipped;
    }
    Checker checker(fs::absolute(words[1]), *shared / "hf");
    checker.check_expected(*shared / "hf" / "expected.tsv", *shared / "hf" / "specs");
    checker.check_expected("tests/golden/checkpoints/expected.tsv", "tests/golden/checkpoints");
    checker.check_refused();
    return checker.tell();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
