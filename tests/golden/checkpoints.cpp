// golden_tables checkpoints|parts|adapters GGUFMILL: converts the checkpoints of golden tables with `ggufmill convert`
// or `ggufmill convert-lora`, and compares the names and the bytes of the outputs with those of llama.cpp's scripts.
//
// checkpoints: text models, from hf and hf-defaults in the larger golden data, and from tests/golden/checkpoints and
// tests/golden/projectors, whose tokenizers are in the larger golden data as well. Also reads the adapters in
// tests/golden/checkpoints/adapters.tsv with `adapter` in the source of a pipeline file.
// parts: projectors, drafts, dense modules, and what b11434 brought, from hf-more and hf-b11434. adapters: the adapters
// among these.
//
// A file listed in ulp.tsv beside a table may instead have the bytes that correctly rounded functions give. Checkpoints
// that the reference refuses have to be refused. tests/golden/exceptions.tsv lists the rows that fail, with the reason
// and what ggufmill does instead. A listed row fails the test if it passes, does something else, or is in no table.
// Skipped with a message if the larger data is missing.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

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

constexpr const char* kExceptions = "tests/golden/exceptions.tsv";
constexpr const char* kRefusedCase = "refused";  // in place of a run, for a checkpoint that the reference refuses

// A table of golden values, and the folders in which its specs may be.
struct Set {
  std::string name;
  fs::path folder;
  std::vector<fs::path> specs;
};

// The fields of one line, by the names in the table's first line.
using Row = std::map<std::string, std::string>;

std::vector<Row> rows_of(const fs::path& path) {
  const Tsv table = read_tsv(path);
  std::vector<Row> rows;
  for (const std::vector<std::string>& line : table.rows) {
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < line.size(); ++i) row[table.names[i]] = line[i];
  }
  return rows;
}

// Returns an argument with the names of the folders filled in.
std::string filled(std::string word, const fs::path& folder) {
  if (const std::size_t at = word.find("{folder}"); at != std::string::npos) word.replace(at, 8, folder.string());
  if (const std::size_t at = word.find("{parent}"); at != std::string::npos)
    word.replace(at, 8, folder.parent_path().string());
  return word;
}

bool is_adapter(const std::string& name) { return name.starts_with("lora-") || name.starts_with("n-lora-"); }

// Verb that converts a case.
std::string tool_of(const std::string& name) { return is_adapter(name) ? "convert-lora" : "convert"; }

constexpr const char* kRefusedOutcome = "refused";  // outcome of a run that reports an error and writes nothing

// Describes what a run did: kRefusedOutcome, the SHA-256 of its outputs in the order of their names, or its exit code.
std::string outcome_of(const ProcessResult& result, const fs::path& out) {
  const std::vector<std::string> files = names_in(out);
  if (result.exit_code != 0) {
    const bool is_refused = result.exit_code < 100 && result.err.find("error: ") != result.err.npos && files.empty();
    return is_refused ? kRefusedOutcome : fmt::format("exit code {}", result.exit_code);
  }
  std::string digests;
  for (const std::string& file : files) digests += (digests.empty() ? "" : " ") + sha256_file(out / file);
  return digests;
}

// The rows that are known to fail.
class Exceptions {
 public:
  using Key = std::tuple<std::string, std::string, std::string>;  // set, case and run

  Exceptions() {
    for (const Row& row : rows_of(kExceptions))
      rows_.emplace(Key(row.at("set"), row.at("case"), row.at("run")), row.at("instead"));
  }
  // Returns true if the row has the listed outcome, or passes and is not listed; prints what is wrong otherwise.
  bool agree(const Key& key, bool passes, const std::string& outcome, const std::string& fault) const {
    const auto listed = rows_.find(key);
    if (listed == rows_.end() && passes) return true;
    if (listed != rows_.end() && !passes && outcome == listed->second) return true;
    const auto& [set, name, run] = key;
    if (passes)
      fmt::print(stderr, "{} {} {} passes: remove it from {}\n", set, name, run, kExceptions);
    else if (listed == rows_.end())
      fmt::print(stderr, "{} {} {}: {}\n", set, name, run, fault);
    else
      fmt::print(stderr, "{} {} {}: {} instead of {}, see {}: {}\n", set, name, run, outcome, listed->second,
                 kExceptions, fault);
    return false;
  }
  // Returns true if all rows of `set` whose cases are `wanted` are in its tables; prints the others.
  bool are_in(const std::set<Key>& tables, const std::string& set, const auto& wanted) const {
    bool all = true;
    for (const auto& [key, instead] : rows_) {
      const auto& [its_set, name, run] = key;
      if (its_set != set || !wanted(name) || tables.contains(key)) continue;
      fmt::print(stderr, "{} {} {} is in no table: remove it from {}\n", set, name, run, kExceptions);
      all = false;
    }
    return all;
  }

 private:
  std::map<Key, std::string> rows_;
};

class Checker {
 public:
  Checker(std::string program, fs::path hf) : program_(std::move(program)), hf_(std::move(hf)) {}

  // Checks the rows of a set whose cases are `wanted`.
  void check(const Set& set, const auto& wanted) {
    using Outputs = std::map<std::string, std::set<std::string>>;  // by file: digests
    std::map<std::string, std::map<std::string, Outputs>> cases;   // by case and run
    for (const Row& row : rows_of(set.folder / "expected.tsv"))
      if (wanted(row.at("case"))) cases[row.at("case")][row.at("run")][row.at("file")].insert(row.at("sha256"));
    if (fs::exists(set.folder / "ulp.tsv"))
      for (const Row& row : rows_of(set.folder / "ulp.tsv"))
        if (wanted(row.at("case")))
          cases[row.at("case")][row.at("run")][row.at("file")].insert(row.at("sha256_rounded"));
    std::set<Exceptions::Key> tables;
    for (const auto& [name, runs] : cases) {
      for (const auto& [run, outputs] : runs) tables.emplace(set.name, name, run);
      if (!is_in_sample(case_++)) continue;
      const std::string file = name + ".json";
      const auto at = std::ranges::find_if(set.specs, [&](const fs::path& each) { return exists(each / file); });
      if (at == set.specs.end()) throw std::runtime_error(fmt::format("no folder has {}", file));
      const json::value spec = json::parse(read_text(*at / file));
      const TempDir parent;
      const fs::path folder = make_checkpoint(hf_, spec, parent.path());
      for (const json::value& run : spec.at("runs").as_array())
        if (const auto found = runs.find(run.at("label").as_string().c_str()); found != runs.end())
          check_run(set.name, name, run, folder, found->second);
    }
    if (fs::exists(set.folder / "refused.tsv") && fs::exists(set.folder / "refused"))
      check_refused(set, wanted, tables);
    is_as_listed_ = exceptions_.are_in(tables, set.name, wanted) && is_as_listed_;
  }

  // Checks the adapters that are stored in checkpoints with the specs in `folder`.
  void check_stored_adapters(const fs::path& folder) {
    for (const Row& row : rows_of(folder / "adapters.tsv")) {
      const TempDir parent, out;
      const fs::path checkpoint =
          make_checkpoint(hf_, json::parse(read_text(folder / (row.at("case") + ".json"))), parent.path());
      write_text(out.file("job.yaml"), fmt::format("version: 1\nsource: {{huggingface: {{path: {}, adapter: {}}}}}\n"
                                                   "outputs: [{{gguf: {}}}]\n",
                                                   checkpoint.string(), row.at("adapter"), out.file("adapter.gguf")));
      const ProcessResult result = run_process({program_, "run", out.file("job.yaml")}, out.path());
      const bool right = result.exit_code == 0 && sha256_file(out.file("adapter.gguf")) == row.at("sha256");
      count({"adapters", row.at("case"), row.at("adapter")}, right, "differs", "differs\n" + result.err);
    }
  }

  int tell() const {
    for (const auto& [set, count] : counts_)
      fmt::print("{}: {} of {} outputs, {} of {} refused\n", set, count.right, count.outputs, count.right_refusals,
                 count.refusals);
    return is_as_listed_ && !counts_.empty() ? 0 : 1;
  }

 private:
  struct Count {
    std::size_t outputs = 0, right = 0, refusals = 0, right_refusals = 0;
  };

  void count(const Exceptions::Key& key, bool right, const std::string& outcome, const std::string& fault) {
    const auto& [set, name, run] = key;
    Count& count = counts_[set];
    const bool is_refusal = run == kRefusedCase;
    ++(is_refusal ? count.refusals : count.outputs);
    (is_refusal ? count.right_refusals : count.right) += right;
    is_as_listed_ = exceptions_.agree(key, right, outcome, fault) && is_as_listed_;
  }

  ProcessResult convert(const std::string& name, const std::string& type, const Words& arguments,
                        const fs::path& folder, const TempDir& out) const {
    std::vector<std::string> words{program_, tool_of(name), folder, "--outfile", out.path(), "--outtype", type};
    for (const std::string& word : arguments) words.push_back(filled(word, folder));
    return run_process(words, out.path());
  }

  // All files of a run count as one row of exceptions.tsv, but each as an output.
  void check_run(const std::string& set, const std::string& name, const json::value& run, const fs::path& folder,
                 const std::map<std::string, std::set<std::string>>& expected) {
    const TempDir out;
    Words arguments;
    for (const json::value& argument : run.at("args").as_array()) arguments.emplace_back(argument.as_string().c_str());
    const ProcessResult result = convert(name, run.at("outtype").as_string().c_str(), arguments, folder, out);
    for (const auto& [file, digests] : expected) {
      const fs::path path = out.path() / file;
      const bool is_there = fs::exists(path), right = is_there && digests.contains(sha256_file(path));
      count({set, name, run.at("label").as_string().c_str()}, right, right ? "" : outcome_of(result, out.path()),
            fmt::format("{} {}\n{}", file, is_there ? "differs" : "is not there", result.err));
    }
  }

  void check_refused(const Set& set, const auto& wanted, std::set<Exceptions::Key>& tables) {
    for (const Row& row : rows_of(set.folder / "refused.tsv")) {
      const std::string& name = row.at("case");
      if (row.at("exit") == "0" || !wanted(name)) continue;
      tables.emplace(set.name, name, kRefusedCase);
      const json::value spec = json::parse(read_text(set.folder / "refused" / (name + ".json")));
      const TempDir parent, out;
      const fs::path folder = make_checkpoint(hf_, spec, parent.path());
      const ProcessResult result = convert(name, row.at("outtype"), words_of(row.at("args")), folder, out);
      const std::string outcome = outcome_of(result, out.path());
      count({set.name, name, kRefusedCase}, outcome == kRefusedOutcome, outcome,
            fmt::format("is not refused: {} {}", result.exit_code, result.err));
    }
  }

  std::string program_;
  fs::path hf_;
  Exceptions exceptions_;
  std::size_t case_ = 0;
  bool is_as_listed_ = true;
  std::map<std::string, Count> counts_;  // by set
};

int skip() {
  fmt::print("skipped: the larger golden data is missing\n");
  return kSkippedExitCode;
}

int check_more(const Words& arguments, bool adapters) {
  if (arguments.size() != 1) throw UsageError();
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf-more")) return skip();
  Checker checker(fs::absolute(arguments[0]), *shared / "hf");
  for (const char* const name : {"hf-more", "hf-b11434"})
    checker.check({name, *shared / name, {*shared / name / "specs"}},
                  [&](const std::string& each) { return is_adapter(each) == adapters; });
  return checker.tell();
}

}  // namespace

int check_checkpoints(const Words& arguments) {
  if (arguments.size() != 1) throw UsageError();
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) return skip();
  Checker checker(fs::absolute(arguments[0]), *shared / "hf");
  const fs::path own = "tests/golden/checkpoints", projectors = "tests/golden/projectors", hf = *shared / "hf",
                 defaults = *shared / "hf-defaults";
  const std::vector<fs::path> specs{hf / "specs", own, projectors, defaults / "specs"};
  const auto all = [](const std::string&) { return true; };
  for (const auto& [name, folder] : {std::pair("hf", hf), std::pair("hf-defaults", defaults),
                                     std::pair("checkpoints", own), std::pair("projectors", projectors)})
    checker.check({name, folder, specs}, all);
  checker.check_stored_adapters(own);
  return checker.tell();
}

int check_parts(const Words& arguments) { return check_more(arguments, false); }

int check_adapters(const Words& arguments) { return check_more(arguments, true); }

}  // namespace ggufmill::golden
