#include "tests/golden/plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <stdexcept>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/sha256.h"
#include "tests/support/synth_model.h"
#include "tests/support/tsv.h"

namespace ggufmill::golden {
namespace {

namespace json = boost::json;

constexpr std::string_view kWithImportance = "+i";

std::string pipeline(const std::vector<std::string>& recipes, bool importance) {
  std::string text = "version: 1\nsource: {gguf: model.gguf}\n";
  if (importance) text += "stages:\n  - importance: {file: imatrix.gguf, any_model: true}\n";
  text += "outputs:\n";
  for (const std::string& recipe : recipes) text += fmt::format("  - {{gguf: {0}.gguf, quantize: {0}}}\n", recipe);
  return text;
}

// A recipe is refused where some tensor fits no type: what importance lacks is not looked at.
bool is_refused(const json::object& output) {
  const json::array& problems = output.at("problems").as_array();
  return std::any_of(problems.begin(), problems.end(), [](const json::value& problem) {
    return std::string_view(problem.as_string()).find(" of a block") != std::string_view::npos;
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

}  // namespace

PlanTable load_plan_table(const std::string& path) {
  const Tsv file = read_tsv(path);
  PlanTable table;
  for (std::size_t column = 1; column < file.names.size(); ++column) {
    TypesByTensor& types = table[file.names[column]];
    for (const std::vector<std::string>& row : file.rows) types.emplace_back(row[0], row[column]);
  }
  return table;
}

std::string digest_of(const TypesByTensor& types) {
  std::string text;
  for (const auto& [tensor, type] : types)
    if (type != kRefused) text += tensor + "\t" + type + "\n";
  return sha256_hex(as_bytes(text));
}

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

}  // namespace ggufmill::golden
