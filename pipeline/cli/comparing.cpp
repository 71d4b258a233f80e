#include "pipeline/cli/comparing.h"

#include <fmt/format.h>

#include <unordered_map>

#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/reporting.h"
#include "pipeline/cli/signals.h"
#include "pipeline/graph/compare.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/coverage.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

Result<CompareOptions> read_options(const po::variables_map& values) {
  CompareOptions options;
  if (values.count("memory")) {
    BOOST_OUTCOME_TRY(options.memory, parse_bytes(values["memory"].as<std::string>()));
  }
  options.threads = value_or<unsigned>(values, "threads", 0);
  options.stop = catch_signals();
  return options;
}

Result<Model> read_model(const std::string& path) {
  BOOST_OUTCOME_TRY(Model model, read_gguf(path));
  for (const std::string& warning : model.warnings) say_warning(warning);
  model.warnings.clear();
  return model;
}

Status add_importance(const std::string& path, Model& model) {
  BOOST_OUTCOME_TRY(const ImportanceFile file, open_importance(path, read_gguf));
  BOOST_OUTCOME_TRY(attach_importance(file, {}, {}, model));
  for (const std::string& warning : model.warnings) say_warning(warning);
  if (!model.problems.empty()) return model.problems.front();
  return ok();
}

// What is in both, by name, and what is not.
struct Matching {
  std::vector<TensorPair> pairs;
  std::vector<UnmatchedTensor> unmatched;
};

std::string why_not(const Tensor& a, const Tensor& b, const Kernels& kernels) {
  if (a.shape != b.shape) return fmt::format("its shape is {} in A and {} in B", describe(a.shape), describe(b.shape));
  for (const Tensor* tensor : {&a, &b})
    if (a.source.type != b.source.type && !is_decodable(*tensor->source.type, kernels))
      return fmt::format("it is {} in A and {} in B, and {} is not read as numbers", a.source.type->name,
                         b.source.type->name, tensor->source.type->name);
  return "";
}

Matching match(const Model& a, const Model& b, const Kernels& kernels) {
  Matching matching;
  std::unordered_map<std::string_view, const Tensor*> left;
  for (const Tensor& tensor : b.tensors) left.emplace(tensor.name, &tensor);
  for (const Tensor& tensor : a.tensors) {
    const auto found = left.find(tensor.name);
    if (found == left.end()) {
      matching.unmatched.push_back({tensor.name, "only in A"});
      continue;
    }
    if (const std::string why = why_not(tensor, *found->second, kernels); !why.empty())
      matching.unmatched.push_back({tensor.name, why});
    else
      matching.pairs.push_back({&tensor, found->second});
    left.erase(found);
  }
  for (const Tensor& tensor : b.tensors)
    if (left.count(tensor.name)) matching.unmatched.push_back({tensor.name, "only in B"});
  return matching;
}

ReportTensor tensor_report(const TensorPair& pair, const ComparedPair& compared) {
  ReportTensor told;
  told.name = pair.a->name;
  told.shape = pair.a->shape;
  told.source_type = pair.a->source.type;
  told.type = pair.b->source.type;
  told.source_bytes = pair.a->source.bytes;
  told.bytes = pair.b->source.bytes;
  told.importance = pair.a->importance != nullptr;
  const bool empty = pair.a->shape.elements() == 0;
  if (compared.same_bytes || empty)
    told.state = ErrorState::kExact;
  else if (compared.error)
    told.state = ErrorState::kMeasured, told.sums = *compared.error;
  return told;
}

}  // namespace

Result<Report> compare_models(const std::string& path_a, const std::string& path_b, const po::variables_map& values) {
  BOOST_OUTCOME_TRY(const auto kernels, Kernels::load({value_or<std::vector<std::string>>(values, "kernel-dir", {}),
                                                       value_or<std::string>(values, "isa", {})}));
  BOOST_OUTCOME_TRY(CompareOptions options, read_options(values));
  BOOST_OUTCOME_TRY(Model a, read_model(path_a));
  BOOST_OUTCOME_TRY(const Model b, read_model(path_b));
  if (values.count("imatrix")) {
    BOOST_OUTCOME_TRY(add_importance(values["imatrix"].as<std::string>(), a));
  }
  Matching matching = match(a, b, *kernels);
  ProgressMeter meter(values.count("quiet") > 0);
  options.progress = [&](std::uint64_t done, std::uint64_t total) { meter.show("comparing", done, total); };
  BOOST_OUTCOME_TRY(const CompareResult compared, compare_tensors(matching.pairs, a, b, *kernels, options));
  Report report;
  report.comparison = report.measured = true;
  describe_source(a, report);
  report.run = {compared.seconds, compared.bytes_read, 0, compared.peak_memory, compared.threads, "", kernels->isa()};
  ReportOutput& output = report.outputs.emplace_back();
  output.files = b.files;
  output.unmatched = std::move(matching.unmatched);
  for (std::size_t i = 0; i < matching.pairs.size(); ++i)
    output.tensors.push_back(tensor_report(matching.pairs[i], compared.pairs[i]));
  return report;
}

}  // namespace ggufmill
