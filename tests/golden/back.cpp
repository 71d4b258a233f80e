// golden_tables back: converts every checkpoint of `golden_tables checkpoints` to an F32 file and, with `names:
// huggingface`, back to a checkpoint in the type of its weights. Compares the result for each checkpoint with
// tests/golden/back.tsv: how many tensors are equal, differ, are not written or were missing before, or why converting
// back is impossible. `--update` writes the table. Skipped with a message if ../shared is missing.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "pipeline/api/context.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/golden/golden.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/sample.h"
#include "tests/support/shared_data.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::golden {
namespace {

namespace json = boost::json;

constexpr const char* kTable = "tests/golden/back.tsv";

class BackChecker {
 public:
  explicit BackChecker(fs::path hf) : context_(Context::create().value()), hf_(std::move(hf)) {}

  void check(const fs::path& specs) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(specs))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      if (!is_in_sample(number_++)) {
        lines_.push_back(known_line(file.stem()));
        continue;
      }
      const TempDir parent;
      const fs::path folder = make_checkpoint(hf_, json::parse(read_text(file)), parent.path());
      lines_.push_back(file.stem().string() + "\t" + there_and_back(folder, parent) + "\n");
      fmt::print("{}", lines_.back());
    }
  }

  std::string table() const {
    std::string text = "case\tequal\tdiffer\tnot_written\tnew\tremark\n";
    for (const std::string& line : lines_) text += line;
    return text;
  }

 private:
  static std::string known_line(const std::string& name) {
    const std::string table = read_text(kTable);
    const std::size_t at = table.find("\n" + name + "\t") + 1;
    return table.substr(at, table.find('\n', at) + 1 - at);
  }

  std::string there_and_back(const fs::path& folder, const TempDir& parent) const {
    const std::string gguf = parent.file("there.gguf"), back = parent.file("back"), as_is = parent.file("as_is");
    // Link only the weights: a folder with config.json would be read as the converted model.
    fs::create_directory(as_is);
    for (const auto& entry : fs::directory_iterator(folder))
      if (const std::string name = entry.path().filename();
          name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"))
        fs::create_hard_link(entry.path(), fs::path(as_is) / name);
    const std::string config = fs::exists(folder / "params.json") ? "params.json" : "config.json";
    const auto there = [&](std::string_view pre) {
      return run(fmt::format("version: 1\nsource: {{huggingface: {{path: '{}', config: {}, outtype: f32, {}"
                             "allow_missing: true}}}}\noutputs: [{{gguf: '{}'}}]\n",
                             folder.string(), config, pre, gguf),
                 folder);
    };
    std::string fault = there("pre: default, ");
    if (fault.starts_with("`pre` has no effect")) fault = there("");  // its tokenizer does not use one
    if (!fault.empty()) return "0\t0\t0\t0\tnot converted: " + fault;
    const std::string here = fmt::format(
        "version: 1\nsource: {{gguf: '{}'}}\n"
        "outputs: [{{safetensors: {{path: '{}', dtype: {}, names: huggingface, config: '{}'}}}}]\n",
        gguf, back, type_of(as_is), (folder / config).string());
    if (fault = run(here, folder); !fault.empty()) return "0\t0\t0\t0\t" + fault;
    return compare(as_is, back);
  }

  // Returns an empty string, or the error in one line.
  std::string run(const std::string& pipeline, const fs::path& folder) const {
    const auto finish = [&]() -> Status {
      BOOST_OUTCOME_TRY(const Job job, context_.parse_job(pipeline, "job.yaml"));
      BOOST_OUTCOME_TRY(const Plan plan, context_.plan(job));
      BOOST_OUTCOME_TRY(context_.run(plan, {}));
      return ok();
    };
    const Status status = finish();
    if (status) return "";
    std::string text = status.error().what;
    for (const Error& also : status.error().also) text += " | " + also.what;
    for (std::size_t at; (at = text.find(folder.string())) != text.npos;) text.replace(at, folder.string().size(), "F");
    return text;
  }

  // Returns the type of all floating-point tensors, or f32 if they have several types.
  std::string type_of(const std::string& weights) const {
    const Model model = context_.inspect(weights).value();
    std::string type;
    for (const Tensor& tensor : model.tensors) {
      const std::string_view name = tensor.type->name;
      if (name != "BF16" && name != "F16" && name != "F32") continue;
      if (!type.empty() && type != name) return "f32";
      type = name;
    }
    return type == "F32" ? "f32" : type == "F16" ? "f16" : "bf16";
  }

  std::string compare(const std::string& before, const std::string& after) const {
    const auto compared = context_.compare(before, after, {});
    if (!compared) return "0\t0\t0\t0\t" + compared.error().what;
    std::size_t equal = 0, differ = 0, lost = 0, fresh = 0;
    std::string remark;
    const auto add = [&](std::size_t& count, const std::string& name, std::string_view what) {
      if (count++ == 0) remark += fmt::format("{}{}: {}", remark.empty() ? "" : "; ", name, what);
    };
    const ReportOutput& output = compared.value().report.outputs.at(0);
    for (const ReportTensor& tensor : output.tensors)
      if (tensor.state == ErrorState::kExact || (tensor.state == ErrorState::kMeasured && tensor.sums.difference == 0))
        ++equal;
      else
        add(differ, tensor.name, "differs");
    for (const UnmatchedTensor& tensor : output.unmatched) {
      using Where = UnmatchedTensor::Where;
      const bool only_before = tensor.where == Where::kOnlyInA, only_after = tensor.where == Where::kOnlyInB;
      add(only_before  ? lost
          : only_after ? fresh
                       : differ,
          tensor.name,
          only_before  ? "not written"
          : only_after ? "was not there"
                       : tensor.what);
    }
    return fmt::format("{}\t{}\t{}\t{}\t{}", equal, differ, lost, fresh, remark);
  }

  Context context_;
  fs::path hf_;
  std::size_t number_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace

int check_back(const Words& arguments) {
  const bool update = arguments == Words{"--update"};
  if (!arguments.empty() && !update) throw UsageError();
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) {
    fmt::print("skipped: there is no ../shared/hf\n");
    return kSkippedExitCode;
  }
  BackChecker checker(*shared / "hf");
  checker.check(*shared / "hf" / "specs");
  checker.check("tests/golden/checkpoints");
  if (update) std::ofstream(kTable) << checker.table();
  if (read_text(kTable) == checker.table()) return 0;
  fmt::print("this is not what {} says; if it is right: golden_tables back --update\n", kTable);
  return 1;
}

}  // namespace ggufmill::golden
