// golden_plans: what `ggufmill plan` decides for every tensor of models of real size (sparse files), against golden
// figures: digests of whole columns in the repository, every cell in the larger set beside it. Prints N of N, and how
// long each plan took.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/golden/plan_table.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

namespace {

using namespace ggufmill;
using namespace ggufmill::golden;

struct Tally {
  std::size_t right = 0, all = 0;
};

// Counts a cell, and names the first few that are wrong.
void count(bool right, const std::string& what, Tally& tally) {
  constexpr std::size_t kMostShown = 40;
  ++tally.all;
  if (right)
    ++tally.right;
  else if (tally.all - tally.right <= kMostShown)
    fmt::print(stderr, "{}\n", what);
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

// Every cell of every table of the larger set.
Tally check_cells(const std::string& program, const std::filesystem::path& golden) {
  Tally tally;
  for (const auto& entry : std::filesystem::directory_iterator(golden / "plans")) {
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

bool is_right(const Tally& tally) { return tally.all > 0 && tally.right == tally.all; }

int run(const std::string& program) {
  const Tally columns = check_digests(program);
  fmt::print("plans: {} of {} columns\n", columns.right, columns.all);
  const auto shared = shared_data();
  if (!shared) {
    fmt::print("plans: cells skipped: no larger golden data (../shared or $GGUFMILL_SHARED)\n");
    return is_right(columns) ? 0 : 1;
  }
  const Tally cells = check_cells(program, *shared / "golden");
  fmt::print("plans: {} of {} cells\n", cells.right, cells.all);
  return is_right(columns) && is_right(cells) ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count == 2) return run(std::filesystem::absolute(words[1]));
    fmt::print(stderr, "usage: golden_plans GGUFMILL\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  return 2;
}
