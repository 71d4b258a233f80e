// Two models, matched by name and compared.

#include "pipeline/graph/compare.h"

#include <fmt/format.h>

#include <unordered_map>

#include "pipeline/api/check.h"
#include "pipeline/api/ggufmill.h"
#include "pipeline/api/reports.h"
#include "pipeline/io/output_target.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/coverage.h"

namespace ggufmill {
namespace {

Status add_importance(const std::string& path, Model& model) {
  BOOST_OUTCOME_TRY(const ImportanceFile file, open_importance(path, read_gguf));
  BOOST_OUTCOME_TRY(attach_importance(file, {}, {}, model));
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

Status check_page(const std::string& path, const std::vector<std::string>& inputs, bool overwrite) {
  const WrittenPath page{path, "page"};
  Diagnostics errors;
  check_distinct({&page, 1}, inputs, errors);
  if (!errors.empty()) return errors.together();
  BOOST_OUTCOME_TRY(split_target(path));
  BOOST_OUTCOME_TRY(check_target(path, {overwrite, {}}));
  return ok();
}

}  // namespace

Result<Comparison> Context::compare(const std::string& path_a, const std::string& path_b,
                                    const ComparisonOptions& options) const {
  if (options.threads > Limits::kMostThreads)
    return usage_error(fmt::format("{} threads, and the most is {}", options.threads, Limits::kMostThreads));
  BOOST_OUTCOME_TRY(Model a, read_gguf(path_a));
  BOOST_OUTCOME_TRY(const Model b, read_gguf(path_b));
  std::vector<std::string> inputs = module_paths(kernels());
  for (const Model* model : std::initializer_list<const Model*>{&a, &b})
    for (const SourceFile& file : model->files) inputs.push_back(file.path);
  if (!options.importance.empty()) {
    inputs.push_back(options.importance);
    BOOST_OUTCOME_TRY(add_importance(options.importance, a));
  }
  if (!options.html.empty()) {  // known before the work
    BOOST_OUTCOME_TRY(check_page(options.html, inputs, options.overwrite));
  }
  Matching matching = match(a, b, kernels());
  CompareOptions how{options.memory, options.threads, options.stop, options.progress};
  BOOST_OUTCOME_TRY(const CompareResult compared, compare_tensors(matching.pairs, a, b, kernels(), how));
  Comparison comparison;
  for (const Model* model : std::initializer_list<const Model*>{&a, &b})
    comparison.warnings.insert(comparison.warnings.end(), model->warnings.begin(), model->warnings.end());
  Report& report = comparison.report;
  report.comparison = report.measured = true;
  describe_source(a, report);
  report.run = {compared.seconds, compared.bytes_read, 0, compared.peak_memory, compared.threads, "", kernels().isa()};
  ReportOutput& output = report.outputs.emplace_back();
  output.files = b.files;
  output.unmatched = std::move(matching.unmatched);
  for (std::size_t i = 0; i < matching.pairs.size(); ++i)
    output.tensors.push_back(tensor_report(matching.pairs[i], compared.pairs[i]));
  BOOST_OUTCOME_TRY(write_report(report, "", options.html, inputs, options.overwrite));
  return comparison;
}

}  // namespace ggufmill
