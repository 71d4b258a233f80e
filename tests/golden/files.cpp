// golden_tables files: runs every line of tests/golden/files.tsv with `ggufmill quantize`, and again by running the
// output of --emit-pipeline. With --types, compares the type of every tensor instead of the digest of the file.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/kernels/isa.h"
#include "tests/golden/golden.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/sample.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "tests/support/skip.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

namespace ggufmill::golden {
namespace {

struct FileCase {
  std::string model;       // "tiny-llama"; "tiny-llama+Q8_0": the result of quantizing it
  std::string importance;  // "none", "gguf" or "dat"
  std::string arguments;   // as for llama-quantize: options, then the type
  bool refused = false;
  std::string input_sha256;
  std::string output_sha256;  // empty if refused
};

// Types of tensors by name, and `general.file_type` under its own; by model, importance and arguments.
using TypeTable = std::map<std::vector<std::string>, std::map<std::string, std::string>>;

enum class Way { kQuantize, kPipeline };  // `ggufmill quantize`; `ggufmill run` with the output of --emit-pipeline

// Runs cases in subfolders of `folder`, one for each model. Inputs are created when first needed. Not thread-safe.
class FileCaseRunner {
 public:
  // `options` are passed on to the program. If `types` is not empty, types are compared instead of digests.
  FileCaseRunner(std::string program, std::vector<std::string> options, TypeTable types, std::string folder)
      : program_(std::move(program)),
        options_(std::move(options)),
        types_(std::move(types)),
        folder_(std::move(folder)) {}

  // Returns a description of the error, or an empty string. Throws std::exception if the case cannot be run.
  std::string run(const FileCase& file_case, Way way);

 private:
  struct Inputs {
    std::string folder;  // contains model.gguf, imatrix.gguf and imatrix.dat
    std::string sha256;  // of model.gguf
  };
  const Inputs& inputs_of(const std::string& model);
  void make_inputs(const std::string& model, const std::string& folder);
  std::vector<std::string> with_options(std::vector<std::string> words) const;
  std::string verdict(const FileCase& file_case, const ProcessResult& result, const std::string& output) const;
  std::string compare_types(const FileCase& file_case, const std::string& output) const;

  std::string program_;
  std::vector<std::string> options_;
  TypeTable types_;
  std::string folder_;
  std::map<std::string, Inputs> inputs_;  // by model
};

constexpr std::uint64_t kImportanceSeed = 70;

// Returns the arguments of `ggufmill quantize`: [OPTIONS] model.gguf out.gguf TYPE 2.
Words quantize_arguments(const FileCase& file_case) {
  Words words;
  if (file_case.importance != "none") words = {"--imatrix", "imatrix." + file_case.importance};
  for (std::string& word : words_of(file_case.arguments)) words.push_back(std::move(word));
  const std::string type = words.back();
  words.back() = "model.gguf";
  words.insert(words.end(), {"out.gguf", type, "2"});
  return words;
}

// A program that a signal ended or that failed internally has not refused the input.
bool has_refused(const ProcessResult& result) { return result.exit_code >= 2 && result.exit_code <= 6; }

std::string FileCaseRunner::verdict(const FileCase& file_case, const ProcessResult& result,
                                    const std::string& output) const {
  const bool exists = fs::exists(output);
  if (file_case.refused) {
    if (!has_refused(result)) return fmt::format("is not refused: exit code {}", result.exit_code);
    return exists ? "is refused, but leaves an output" : "";
  }
  if (result.exit_code != 0) return fmt::format("exit code {}: {}", result.exit_code, result.err);
  if (!exists) return "wrote no output";
  if (!types_.empty()) return compare_types(file_case, output);
  return sha256_file(output) == file_case.output_sha256 ? "" : "the output differs";
}

std::string FileCaseRunner::compare_types(const FileCase& file_case, const std::string& output) const {
  const auto expected = types_.find({file_case.model, file_case.importance, file_case.arguments});
  if (expected == types_.end()) return "is not in the table of types";
  const ProcessResult inspected = run_process({program_, "inspect", "--json", output, options_[0], options_[1]});
  if (inspected.exit_code != 0) return "cannot be inspected: " + inspected.err;
  const boost::json::value model = boost::json::parse(inspected.out);
  std::map<std::string, std::string> types;
  for (const boost::json::value& tensor : model.at("tensors").as_array())
    types[tensor.at("name").as_string().c_str()] = tensor.at("type").as_string().c_str();
  for (const boost::json::value& entry : model.at("metadata").as_array())
    if (entry.at("key") == "general.file_type") types["general.file_type"] = serialize(entry.at("value"));
  for (const auto& [name, type] : expected->second)
    if (types[name] != type) return fmt::format("{} is {} instead of {}", name, types[name], type);
  return types.size() == expected->second.size() ? "" : "has more tensors than the table";
}

std::string describe(const FileCase& file_case) {
  return fmt::format("{}, importance {}: {}", file_case.model, file_case.importance, file_case.arguments);
}

// Throws std::runtime_error if the table is invalid.
std::vector<FileCase> load_file_cases(const std::string& path) {
  std::vector<FileCase> cases;
  for (const std::vector<std::string>& row : read_tsv(path).rows) {
    if (row.size() != 6 || (row[3] != "ok" && row[3] != "refused"))
      throw std::runtime_error(path + ": is not a table of files");
    const bool refused = row[3] == "refused";
    cases.push_back({row[0], row[1], row[2], refused, row[4], refused ? "" : row[5]});
  }
  return cases;
}

TypeTable load_types(const std::string& path) {
  TypeTable types;
  if (path.empty()) return types;
  for (const std::vector<std::string>& row : read_tsv(path).rows) {
    if (row.size() != 5) throw std::runtime_error(path + ": is not a table of types");
    types[{row[0], row[1], row[2]}][row[3]] = row[4];
  }
  return types;
}

std::string FileCaseRunner::run(const FileCase& file_case, Way way) {
  const Inputs& inputs = inputs_of(file_case.model);
  if (inputs.sha256 != file_case.input_sha256) return "the input differs";
  const std::string output = inputs.folder + "/out.gguf";
  fs::remove(output);
  const Words arguments = quantize_arguments(file_case);
  if (way == Way::kQuantize)
    return verdict(file_case, run_process(join(with_options({program_, "quantize", "-q"}), arguments), inputs.folder),
                   output);
  const ProcessResult pipeline =
      run_process(join(with_options({program_, "quantize", "--emit-pipeline"}), arguments), inputs.folder);
  if (pipeline.exit_code != 0) return verdict(file_case, pipeline, output);
  write_text(inputs.folder + "/job.yaml", pipeline.out);
  return verdict(file_case, run_process(with_options({program_, "run", "job.yaml", "-q"}), inputs.folder), output);
}

Words FileCaseRunner::with_options(Words words) const { return join(std::move(words), options_); }

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
  const ProcessResult result = run_process(with_options(words));
  if (result.exit_code != 0) throw std::runtime_error(model + ": " + result.err);
}

struct Options {
  std::string table = "tests/golden/files.tsv";
  std::string types;
  std::string only;
  std::string isa;
  std::string kernel_dir;
  std::string program;
  bool once = false;
  bool shared = false;
};

Options parse(const Words& words) {
  Options options;
  if (const char* isa = std::getenv("GGUFMILL_TEST_ISA")) options.isa = isa;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_value = i + 1 < words.size();
    if (word == "--table" && has_value)
      options.table = words[++i];
    else if (word == "--only" && has_value)
      options.only = words[++i];
    else if (word == "--isa" && has_value)
      options.isa = words[++i];
    else if (word == "--types" && has_value)
      options.types = words[++i];
    else if (word == "--kernel-dir" && has_value)
      options.kernel_dir = words[++i];
    else if (word == "--shared")
      options.shared = true;
    else if (word == "--once")
      options.once = true;
    else if (options.program.empty() && !word.starts_with("--"))
      options.program = fs::absolute(word);  // absolute, because it runs in other folders
    else
      throw UsageError();
  }
  if (options.program.empty()) throw UsageError();
  return options;
}

void check(FileCaseRunner& runner, const FileCase& file_case, Way way, Tally& tally) {
  const std::string wrong = runner.run(file_case, way);
  tally.count(wrong.empty());
  if (!wrong.empty())
    fmt::print(stderr, "{}{}: {}\n", describe(file_case), way == Way::kPipeline ? ", as a pipeline file" : "", wrong);
}

// Returns the CPU features that the ISA needs and that this machine does not have.
std::string missing(const std::string& name) {
  const Isa* isa = find_isa(name);
  return isa ? fmt::format("{}", fmt::join(missing_features(isa->cpu_features, cpu_features()), " ")) : "";
}

// Options of the program. Those of the folder of modules come first, which `inspect` takes as well.
Words passed_on(const Options& options) {
  Words words;
  if (!options.kernel_dir.empty()) words = {"--kernel-dir", options.kernel_dir};
  return options.isa.empty() ? words : join(std::move(words), {"--isa", options.isa});
}

}  // namespace

int check_files(const Words& arguments) {
  Options options = parse(arguments);
  if (options.shared) {
    const auto folder = unversioned_data();
    if (!folder) return kSkippedExitCode;
    options.table = *folder / options.table;
    if (!options.types.empty()) options.types = *folder / options.types;
  }
  if (const std::string lacking = missing(options.isa); !lacking.empty()) {
    fmt::print("skipped: kernels of {} need {}, which this machine does not have\n", options.isa, lacking);
    return kSkippedExitCode;
  }
  const TempDir folder;
  FileCaseRunner runner(options.program, passed_on(options), load_types(options.types), folder.path());
  Tally by_quantize, by_pipeline;
  std::size_t number = 0;
  for (const FileCase& file_case : load_file_cases(options.table)) {
    if (!is_in_sample(number++)) continue;
    if (!options.only.empty() && options.only != file_case.model) continue;
    check(runner, file_case, Way::kQuantize, by_quantize);
    if (!options.once) check(runner, file_case, Way::kPipeline, by_pipeline);
  }
  const Tally all{by_quantize.right + by_pipeline.right, by_quantize.all + by_pipeline.all};
  fmt::print("files{}: {} of {} (by quantize {} of {}, by its pipeline file {} of {})\n",
             options.isa.empty() ? "" : " by the kernels of " + options.isa, all.right, all.all, by_quantize.right,
             by_quantize.all, by_pipeline.right, by_pipeline.all);
  return all.is_right() ? 0 : 1;
}

}  // namespace ggufmill::golden
