// golden_tables plans: compares the types that `ggufmill plan` chooses for every tensor of models of real size (sparse
// files) with golden values: digests of complete columns in the repository, and every cell of the larger set next to
// it. Prints the time of each plan.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "tests/golden/golden.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

namespace ggufmill::golden {
namespace {

// The type of each tensor, in the order of the output; kRefused if the recipe does not fit the model.
constexpr const char* kRefused = "-";
using TypesByTensor = std::vector<std::pair<std::string, std::string>>;
// By recipe: "Q4_K_M"; "Q4_K_M+i" is with an importance matrix that has no entries for the model.
using PlanTable = std::map<std::string, TypesByTensor>;

struct PlanRun {
  PlanTable table;
  double seconds = 0;  // the slower of two plans, with and without importance
  long peak_memory_kib = 0;
};

namespace json = boost::json;

constexpr std::string_view kWithImportance = "+i";

std::string pipeline(const std::vector<std::string>& recipes, bool importance) {
  std::string text = "version: 1\nsource: {gguf: model.gguf}\n";
  if (importance) text += "stages:\n  - importance: {file: imatrix.gguf, any_model: true}\n";
  text += "outputs:\n";
  for (const std::string& recipe : recipes) text += fmt::format("  - {{gguf: {0}.gguf, quantize: {0}}}\n", recipe);
  return text;
}

// A recipe is refused if no type fits some tensor; missing importance is ignored.
bool is_refused(const json::object& output) {
  const json::array& problems = output.at("problems").as_array();
  return std::any_of(problems.begin(), problems.end(), [](const json::value& problem) {
    return std::string_view(problem.as_string()).find(" block size ") != std::string_view::npos;
  });
}

TypesByTensor types_of(const json::object& output) {
  const bool refused = is_refused(output);
  TypesByTensor types;
  for (const json::value& tensor : output.at("tensors").as_array())
    types.emplace_back(tensor.at("name").as_string(), refused ? kRefused : tensor.at("to").as_string().c_str());
  return types;
}

void plan(const std::string& program, const std::vector<std::string>& recipes, bool importance,
          const std::string& folder, PlanRun& run) {
  write_text(folder + "/job.yaml", pipeline(recipes, importance));
  const ProcessResult result = run_process({program, "plan", "job.yaml", "--json"}, folder);
  if (result.out.empty()) throw std::runtime_error("there is no plan: " + result.err);
  const json::value document = json::parse(result.out);
  const json::array& outputs = document.at("outputs").as_array();
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    const std::string column = recipes[i] + (importance ? std::string(kWithImportance) : "");
    run.table[column] = types_of(outputs.at(i).as_object());
  }
  run.seconds = std::max(run.seconds, result.seconds);
  run.peak_memory_kib = std::max(run.peak_memory_kib, result.peak_memory_kib);
}

void write_inputs(const std::string& spec, const std::string& folder) {
  synth::write_model(synth::load_spec(spec), folder + "/model.gguf", true);
  synth::ModelSpec other;
  other.tensors.push_back({"unrelated.weight", synth::WeightType::kF32, {256, 2}, synth::Distribution::kNormal, 1});
  synth::write_imatrix(other, 1, folder + "/imatrix.gguf");
}

// The first line names the recipes; every other line is a tensor. Throws std::runtime_error.
PlanTable load_plan_table(const std::string& path) {
  const Tsv file = read_tsv(path);
  PlanTable table;
  for (std::size_t column = 1; column < file.names.size(); ++column) {
    TypesByTensor& types = table[file.names[column]];
    for (const std::vector<std::string>& row : file.rows) types.emplace_back(row[0], row[column]);
  }
  return table;
}

// Returns the SHA-256 of "tensor TAB type NEWLINE" for every tensor that is not refused.
std::string digest_of(const TypesByTensor& types) {
  std::string text;
  for (const auto& [tensor, type] : types)
    if (type != kRefused) text += tensor + "\t" + type + "\n";
  return sha256_hex(as_bytes(text));
}

// Plans the recipes for the model of a spec, stored as a sparse file in `folder`, with two pipeline files: without and
// with importance. Throws std::exception if planning fails.
PlanRun plan_recipes(const std::string& program, const std::string& spec, const std::vector<std::string>& columns,
                     const std::string& folder) {
  write_inputs(spec, folder);
  std::vector<std::string> plain, weighted;
  for (const std::string& column : columns) {
    if (column.ends_with(kWithImportance))
      weighted.push_back(column.substr(0, column.size() - kWithImportance.size()));
    else
      plain.push_back(column);
  }
  PlanRun run;
  if (!plain.empty()) plan(program, plain, false, folder, run);
  if (!weighted.empty()) plan(program, weighted, true, folder, run);
  return run;
}

// Counts a cell, and prints the first few wrong ones.
void count(bool right, const std::string& what, Tally& tally) {
  constexpr std::size_t kMaxShown = 40;
  tally.count(right);
  if (!right && tally.all - tally.right <= kMaxShown) fmt::print(stderr, "{}\n", what);
}

PlanRun plan_model(const std::string& program, const std::string& spec, const std::vector<std::string>& columns) {
  const TempDir folder;
  return plan_recipes(program, spec, columns, folder.path());
}

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

void compare_column(const std::string& where, const TypesByTensor& wanted, const TypesByTensor& got, Tally& tally) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& [tensor, type] = wanted[i];
    const bool there = i < got.size() && got[i].first == tensor;
    count(there && got[i].second == type,
          fmt::format("{}, {}: {} instead of {}", where, tensor, there ? got[i].second : "another tensor", type),
          tally);
  }
  if (got.size() > wanted.size()) count(false, where + " has more tensors", tally);
}

void print_time(const std::string& program, const std::string& model, const std::string& spec, const PlanRun& all) {
  const PlanRun one = plan_model(program, spec, {"Q4_K_M"});
  fmt::print("  {}: a plan of one output {:.2f} s, {} MiB; of {} outputs {:.2f} s, {} MiB\n", model, one.seconds,
             one.peak_memory_kib >> 10, all.table.size() / 2, all.seconds, all.peak_memory_kib >> 10);
}

// Checks every cell of every table in the larger set.
Tally check_cells(const std::string& program, const fs::path& golden) {
  Tally tally;
  for (const auto& entry : fs::directory_iterator(golden / "plans")) {
    const std::string model = entry.path().stem();
    const std::string spec = golden / "full" / (model + ".json");
    const PlanTable wanted = load_plan_table(entry.path());
    const PlanRun run = plan_model(program, spec, keys_of(wanted));
    for (const auto& [column, types] : wanted) compare_column(model + " " + column, types, run.table.at(column), tally);
    print_time(program, model, spec, run);
  }
  return tally;
}

Tally check_digests(const std::string& program) {
  std::map<std::string, std::map<std::string, std::string>> models;  // model -> column -> digest
  for (const std::vector<std::string>& row : read_tsv("tests/golden/plans.tsv").rows) models[row[0]][row[1]] = row[2];
  Tally tally;
  for (const auto& [model, columns] : models) {
    const PlanRun run = plan_model(program, "tests/golden/full/" + model + ".json", keys_of(columns));
    for (const auto& [column, digest] : columns)
      count(digest_of(run.table.at(column)) == digest, model + " " + column + " differs", tally);
  }
  return tally;
}

}  // namespace

int check_plans(const Words& arguments) {
  if (arguments.size() != 1) throw UsageError();
  const std::string program = fs::absolute(arguments[0]);
  const Tally columns = check_digests(program);
  fmt::print("plans: {} of {} columns\n", columns.right, columns.all);
  const auto shared = shared_data();
  if (!shared) {
    fmt::print("skipped: cells of plans, without the larger golden data (../shared or $GGUFMILL_SHARED)\n");
    return columns.is_right() ? 0 : 1;
  }
  const Tally cells = check_cells(program, *shared / "golden");
  fmt::print("plans: {} of {} cells\n", cells.right, cells.all);
  return columns.is_right() && cells.is_right() ? 0 : 1;
}

}  // namespace ggufmill::golden
