#include "tests/golden/file_case.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/sha256.h"
#include "tests/support/synth_model.h"
#include "tests/support/tsv.h"

namespace ggufmill::golden {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::uint64_t kImportanceSeed = 70;

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The arguments after `ggufmill quantize`: [OPTIONS] model.gguf out.gguf TYPE 2.
Words quantize_arguments(const FileCase& file_case) {
  Words words;
  if (file_case.importance != "none") words = {"--imatrix", "imatrix." + file_case.importance};
  for (std::string& word : words_of(file_case.arguments)) words.push_back(std::move(word));
  const std::string type = words.back();
  words.back() = "model.gguf";
  words.insert(words.end(), {"out.gguf", type, "2"});
  return words;
}

Words join(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Programs that were ended by a signal or failed within have not refused.
bool has_refused(const ProcessResult& result) { return result.exit_code >= 2 && result.exit_code <= 6; }

std::string verdict(const FileCase& file_case, const ProcessResult& result, const std::string& output) {
  const bool exists = fs::exists(output);
  if (file_case.refused) {
    if (!has_refused(result)) return fmt::format("is not refused: exit code {}", result.exit_code);
    return exists ? "is refused, but leaves an output" : "";
  }
  if (result.exit_code != 0) return fmt::format("exit code {}: {}", result.exit_code, result.err);
  if (!exists) return "wrote no output";
  return sha256_file(output) == file_case.output_sha256 ? "" : "the output differs";
}

}  // namespace

std::string describe(const FileCase& file_case) {
  return fmt::format("{}, importance {}: {}", file_case.model, file_case.importance, file_case.arguments);
}

std::vector<FileCase> load_file_cases(const std::string& path) {
  std::vector<FileCase> cases;
  for (const std::vector<std::string>& row : read_tsv(path).rows) {
    if (row.size() != 6 || (row[3] != "ok" && row[3] != "refused"))
      throw std::runtime_error(path + ": is no table of files");
    const bool refused = row[3] == "refused";
    cases.push_back({row[0], row[1], row[2], refused, row[4], refused ? "" : row[5]});
  }
  return cases;
}

std::string FileCaseRunner::run(const FileCase& file_case, Way way) {
  const Inputs& inputs = inputs_of(file_case.model);
  if (inputs.sha256 != file_case.input_sha256) return "the input differs";
  const std::string output = inputs.folder + "/out.gguf";
  fs::remove(output);
  const Words arguments = quantize_arguments(file_case);
  if (way == Way::kQuantize)
    return verdict(file_case, run_process(join(with_isa({program_, "quantize", "-q"}), arguments), inputs.folder),
                   output);
  const ProcessResult pipeline = run_process(join({program_, "quantize", "--emit-pipeline"}, arguments), inputs.folder);
  if (pipeline.exit_code != 0) return verdict(file_case, pipeline, output);
  write_text(inputs.folder + "/job.yaml", pipeline.out);
  return verdict(file_case, run_process(with_isa({program_, "run", "job.yaml", "-q"}), inputs.folder), output);
}

Words FileCaseRunner::with_isa(Words words) const {
  return isa_.empty() ? words : join(std::move(words), {"--isa", isa_});
}

const FileCaseRunner::Inputs& FileCaseRunner::inputs_of(const std::string& model) {
  const auto known = inputs_.find(model);
  if (known != inputs_.end()) return known->second;
  const std::string folder = folder_ + "/" + model;
  fs::create_directories(folder);
  make_inputs(model, folder);
  return inputs_[model] = {folder, sha256_file(folder + "/model.gguf")};
}

void FileCaseRunner::make_inputs(const std::string& model, const std::string& folder) {
  const std::size_t plus = model.find('+');
  const std::string input = folder + "/model.gguf";
  if (plus == std::string::npos) {
    const synth::ModelSpec spec = synth::load_spec("tests/golden/models/" + model + ".json");
    synth::write_model(spec, input);
    for (const char* ending : {"gguf", "dat"})
      synth::write_imatrix(spec, kImportanceSeed, folder + "/imatrix." + ending);
    return;
  }
  const Words words = {program_, "quantize",
                       "-q",     inputs_of(model.substr(0, plus)).folder + "/model.gguf",
                       input,    model.substr(plus + 1),
                       "2"};
  const ProcessResult result = run_process(with_isa(words));
  if (result.exit_code != 0) throw std::runtime_error(model + ": " + result.err);
}

}  // namespace ggufmill::golden
