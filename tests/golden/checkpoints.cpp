// golden_tables checkpoints: converts every line of ../shared/hf/expected.tsv and of
// tests/golden/{checkpoints,projectors}/expected.tsv (whose tokenizers are in ../shared as well) with `ggufmill convert
// --defaults none`, every line of ../shared/hf-defaults/expected.tsv with `ggufmill convert`, including the names of
// its outputs, and every refused checkpoint. Skipped with a message if ../shared is missing. Also reads the adapters in
// tests/golden/checkpoints/adapters.tsv with `adapter` in the source of a pipeline file.
//
// golden_tables parts: does the same for the projectors, drafts, and dense modules of ../shared/hf-more/expected.tsv.
// Not all of them are supported: those must be refused, and the number of the others is in kParts.
//
// golden_tables adapters: does the same for its adapters, with `ggufmill convert-lora` and kAdapters.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>

#include "pipeline/io/platform/filesystem.h"
#include "tests/golden/golden.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/sample.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

namespace ggufmill::golden {
namespace {

namespace json = boost::json;

// Checkpoints that the reference refuses, or converts by accident, and that this program handles differently.
const std::map<std::string, std::string> kOtherwise{
    {"gpt2-mask-buffer", "a buffer of old checkpoints is left out"},
    {"quant-method", "AWQ is known"},
    {"stablelm-qk-norms", "norms of heads are stacked"},
    {"unknown-dtype", "U16 is known"},
};

// Runs in which the reference writes infinities because values are too large for the type. This program refuses them.
const std::map<std::string, std::set<std::string>> kTooLarge{{"llama-dtypes", {"auto", "bf16", "f16"}}};

// Cases whose rows in ../shared were generated without the chat templates of llama.cpp. The rows in this tree include
// them; transformers does not know their model types.
const std::set<std::string> kWithoutTemplates{"rwkv6", "rwkv7-original"};

// The outputs in ../shared/hf-more that are supported, by the kind of case.
const std::map<std::string, std::size_t> kParts{{"mm", 156}, {"draft", 16}, {"dense", 8}};

// Projectors that the reference refuses by accident, and that this program converts.
const std::set<std::string> kPartsOtherwise{"mm-gemma3n-conv-norm", "mm-qwen3-omni-real-names", "mm-too-few-layers"};

// The same for adapters. The reference writes others that llama.cpp applies wrongly, and this program right: it ignores
// use_rslora and alpha_pattern, and exchanges the matrices of Conv1D modules, which then do not fit the model.
const std::map<std::string, std::size_t> kAdapters{{"lora", 40}};
const std::set<std::string> kAdaptersDiffer{"lora-gpt2-conv1d", "lora-qwen2", "lora-rslora-flag"};
// lora-glm4-qkv is an adapter of Qwen3-Next, which the reference can only convert as a whole.
const std::set<std::string> kAdaptersOtherwise{"lora-outtype-auto", "lora-glm4-qkv"};

// Returns an argument with the names of the folders filled in.
std::string filled(std::string word, const fs::path& folder) {
  if (const std::size_t at = word.find("{folder}"); at != std::string::npos) word.replace(at, 8, folder.string());
  if (const std::size_t at = word.find("{parent}"); at != std::string::npos)
    word.replace(at, 8, folder.parent_path().string());
  return word;
}

Words arguments_of(const json::value& run, const fs::path& folder) {
  Words words;
  for (const json::value& argument : run.at("args").as_array())
    words.push_back(filled(argument.as_string().c_str(), folder));
  return words;
}

// Verb that converts a case.
std::string tool_of(const std::string& name) { return name.starts_with("lora-") ? "convert-lora" : "convert"; }

std::string kind_of(const std::string& name) { return name.substr(0, name.find('-')); }

// Output of the reference for the same checkpoints, with or without transformers.
struct Table {
  fs::path path;
  std::string defaults;  // value of --defaults
};

int skip(const char* missing) {
  fmt::print("skipped: there is no ../shared/{}\n", missing);
  return kSkippedExitCode;
}

class Checker {
 public:
  Checker(std::string program, fs::path hf) : program_(std::move(program)), hf_(std::move(hf)) {}

  // Checks the lines of `tables`, whose cases are generated from the specs in `folders`.
  void check_expected(const std::vector<Table>& tables, const std::vector<fs::path>& folders) {
    using Runs = std::map<std::string, std::map<std::string, std::string>>;  // run, output: digest
    std::map<std::string, std::map<std::string, Runs>> cases;                // by case and --defaults
    for (const Table& table : tables)
      for (const std::vector<std::string>& row : read_tsv(table.path).rows)
        cases[row[0]][table.defaults][row[1]][row[6]] = row[8];
    for (const std::string& name : kWithoutTemplates)
      if (const auto found = cases.find(name); found != cases.end() && found->second.contains("none"))
        found->second["transformers"] = found->second["none"];
    for (const auto& [name, by_defaults] : cases) {
      if (!is_in_sample(case_++)) continue;
      const std::string file = name + ".json";
      const auto at = std::ranges::find_if(folders, [&](const fs::path& each) { return exists(each / file); });
      if (at == folders.end()) throw std::runtime_error(fmt::format("no folder has {}", file));
      const json::value spec = json::parse(read_text(*at / file));
      const TempDir parent;
      const fs::path folder = make_checkpoint(hf_, spec, parent.path());
      for (const auto& [defaults, runs] : by_defaults)
        for (const json::value& run : spec.at("runs").as_array())
          if (const auto found = runs.find(run.at("label").as_string().c_str()); found != runs.end())
            check_run(name, defaults, run, folder, found->second);
    }
  }

  // Checks the cases of these kinds in `more`. An output that is there must be the reference's.
  void check_parts(const fs::path& more, const std::map<std::string, std::size_t>& kinds,
                   const std::set<std::string>& otherwise) {
    std::map<std::string, std::map<std::string, std::map<std::string, std::string>>>
        cases;  // case, run, output: digest
    for (const std::vector<std::string>& row : read_tsv(more / "expected.tsv").rows)
      if (kinds.contains(kind_of(row[0]))) cases[row[0]][row[1]][row[7]] = row[9];
    for (const auto& [name, runs] : cases) {
      if (!is_in_sample(case_++)) {
        is_sample_ = true;
        continue;
      }
      const json::value spec = json::parse(read_text(more / "specs" / (name + ".json")));
      const TempDir parent;
      const fs::path folder = make_checkpoint(hf_, spec, parent.path());
      for (const json::value& run : spec.at("runs").as_array())
        if (const auto found = runs.find(run.at("label").as_string().c_str()); found != runs.end())
          check_part(name, run, folder, found->second);
    }
    check_refused(more, 2, otherwise, [&](const std::string& name) { return kinds.contains(kind_of(name)); });
  }

  int tell_parts(const std::map<std::string, std::size_t>& kinds) const {
    bool all_right = wrong_parts_ == 0 && right_refusals_ == refusals_;
    for (const auto& [kind, supported] : kinds) {
      const auto found = counts_.find(kind);
      const Count count = found == counts_.end() ? Count() : found->second;
      fmt::print("parts: {} of {} outputs of {}-*, expected {}\n", count.right, count.outputs, kind, supported);
      all_right = all_right && (count.right == supported || is_sample_);
    }
    fmt::print("parts: {} differ, {} of {} refused\n", wrong_parts_, right_refusals_, refusals_);
    return all_right ? 0 : 1;
  }

  // Runs the checkpoints in the folder's refused.tsv, whose column `type` has the output type, before the arguments
  // and the reference's exit status.
  void check_refused(const fs::path& folder_of_cases, std::size_t type, const auto& otherwise, const auto& wanted) {
    for (const std::vector<std::string>& row : read_tsv(folder_of_cases / "refused.tsv").rows) {
      if (row[type + 2] == "0" || otherwise.contains(row[0]) || !wanted(row[0])) continue;
      const json::value spec = json::parse(read_text(folder_of_cases / "refused" / (row[0] + ".json")));
      const TempDir parent, out;
      const fs::path folder = make_checkpoint(hf_, spec, parent.path());
      std::vector<std::string> words{program_,   tool_of(row[0]), folder,   "--outfile",
                                     out.path(), "--outtype",     row[type]};
      for (std::string& word : words_of(row[type + 1])) words.push_back(filled(std::move(word), folder));
      const ProcessResult result = run_process(words, out.path());
      ++refusals_;
      const bool good = result.exit_code != 0 && result.exit_code < 100 &&
                        result.err.find("error: ") != result.err.npos && names_in(out.path()).empty();
      right_refusals_ += good;
      if (!good) fmt::print(stderr, "{} is not refused: {} {}\n", row[0], result.exit_code, result.err);
    }
  }

  // Checks the adapters that are stored in checkpoints with the specs in `folder`.
  void check_stored_adapters(const fs::path& folder) {
    for (const std::vector<std::string>& row : read_tsv(folder / "adapters.tsv").rows) {
      const TempDir parent, out;
      const fs::path checkpoint =
          make_checkpoint(hf_, json::parse(read_text(folder / (row[0] + ".json"))), parent.path());
      write_text(out.file("job.yaml"),
                 fmt::format("version: 1\nsource: {{huggingface: {{path: {}, adapter: {}, defaults: none}}}}\n"
                             "outputs: [{{gguf: {}}}]\n",
                             checkpoint.string(), row[1], out.file("adapter.gguf")));
      const ProcessResult result = run_process({program_, "run", out.file("job.yaml")}, out.path());
      Count& count = counts_["none"];
      ++count.outputs;
      const bool right = result.exit_code == 0 && sha256_file(out.file("adapter.gguf")) == row[2];
      count.right += right;
      if (!right) fmt::print(stderr, "{}: the adapter {} differs\n{}", row[0], row[1], result.err);
    }
  }

  int tell() const {
    bool all_right = !counts_.empty() && right_refusals_ == refusals_;
    for (const auto& [defaults, count] : counts_) {
      fmt::print("checkpoints: {} of {} outputs with --defaults {}\n", count.right, count.outputs, defaults);
      all_right = all_right && count.right == count.outputs;
    }
    fmt::print("checkpoints: {} of {} refused\n", right_refusals_, refusals_);
    return all_right ? 0 : 1;
  }

 private:
  struct Count {
    std::size_t outputs = 0, right = 0;
  };

  ProcessResult convert(const std::string& tool, const json::value& run, const std::string& defaults,
                        const fs::path& folder, const TempDir& out) const {
    std::vector<std::string> words{
        program_,     tool,    folder, "--outfile", out.path(), "--outtype", run.at("outtype").as_string().c_str(),
        "--defaults", defaults};
    for (std::string& word : arguments_of(run, folder)) words.push_back(std::move(word));
    return run_process(words, out.path());
  }

  void check_part(const std::string& name, const json::value& run, const fs::path& folder,
                  const std::map<std::string, std::string>& expected) {
    const TempDir out;
    const ProcessResult result = convert(tool_of(name), run, "none", folder, out);
    for (const auto& [file, digest] : expected) {
      Count& count = counts_[kind_of(name)];
      ++count.outputs;
      const fs::path path = out.path() / file;
      const bool is_there = fs::exists(path), right = is_there && sha256_file(path) == digest;
      count.right += right;
      if (right) continue;
      // An unsupported checkpoint is refused as a whole.
      const bool is_refused = result.exit_code != 0 && names_in(out.path()).empty();
      if (is_there && kAdaptersDiffer.contains(name)) continue;
      wrong_parts_ += !is_refused;
      fmt::print(stderr, "{} {}: {} {}\n{}", name, run.at("label").as_string().c_str(), file,
                 is_there ? "differs" : "is not there", result.err);
    }
  }

  void check_run(const std::string& name, const std::string& defaults, const json::value& run, const fs::path& folder,
                 const std::map<std::string, std::string>& expected) {
    const TempDir out;
    const ProcessResult result = convert(tool_of(name), run, defaults, folder, out);
    if (const auto runs = kTooLarge.find(name);
        runs != kTooLarge.end() && runs->second.contains(run.at("label").as_string().c_str())) {
      ++refusals_;
      const bool good = result.exit_code == 4 && result.err.find("a value is too large for") != result.err.npos;
      right_refusals_ += good;
      if (!good) fmt::print(stderr, "{}: values that are too large are not refused: {}\n", name, result.err);
      return;
    }
    for (const auto& [file, digest] : expected) {
      Count& count = counts_[defaults];
      ++count.outputs;
      const fs::path path = out.path() / file;
      const bool right = fs::exists(path) && sha256_file(path) == digest;
      count.right += right;
      if (!right)
        fmt::print(stderr, "{} {} --defaults {}: {} {}\n{}", name, run.at("label").as_string().c_str(), defaults, file,
                   fs::exists(path) ? "differs" : "is not there", result.err);
    }
  }

  std::string program_;
  fs::path hf_;
  std::size_t case_ = 0, refusals_ = 0, right_refusals_ = 0, wrong_parts_ = 0;
  bool is_sample_ = false;
  std::map<std::string, Count> counts_;  // by --defaults, or by the kind of part
};

int check_more(const Words& arguments, const std::map<std::string, std::size_t>& kinds,
               const std::set<std::string>& otherwise) {
  if (arguments.size() != 1) throw UsageError();
  const auto shared = august_data();
  if (!shared || !fs::exists(*shared / "hf-more")) return skip("hf-more");
  Checker checker(fs::absolute(arguments[0]), *shared / "hf");
  checker.check_parts(*shared / "hf-more", kinds, otherwise);
  return checker.tell_parts(kinds);
}

}  // namespace

int check_checkpoints(const Words& arguments) {
  if (arguments.size() != 1) throw UsageError();
  const auto shared = august_data();
  if (!shared || !fs::exists(*shared / "hf")) return skip("hf");
  Checker checker(fs::absolute(arguments[0]), *shared / "hf");
  const fs::path own = "tests/golden/checkpoints", projectors = "tests/golden/projectors",
                 with_classes = *shared / "hf-defaults";
  std::vector<Table> tables{
      {*shared / "hf" / "expected.tsv", "none"}, {own / "expected.tsv", "none"}, {projectors / "expected.tsv", "none"}};
  if (fs::exists(with_classes)) tables.push_back({with_classes / "expected.tsv", "transformers"});
  checker.check_expected(tables, {*shared / "hf" / "specs", own, projectors, with_classes / "specs"});
  checker.check_stored_adapters(own);
  checker.check_refused(*shared / "hf", 1, kOtherwise, [](const std::string&) { return true; });
  return checker.tell();
}

int check_parts(const Words& arguments) { return check_more(arguments, kParts, kPartsOtherwise); }

int check_adapters(const Words& arguments) { return check_more(arguments, kAdapters, kAdaptersOtherwise); }

}  // namespace ggufmill::golden
