// Comparison of two models whose tensors are matched by name.

#include <fmt/format.h>

#include <unordered_map>

#include "pipeline/api/check.h"
#include "pipeline/api/context.h"
#include "pipeline/api/open_model.h"
#include "pipeline/api/reports.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/graph/bind.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/coverage.h"

namespace ggufmill {
namespace {

Status add_importance(const std::string& path, const Types& types, Model& model) {
  BOOST_OUTCOME_TRY(const ImportanceFile file, open_importance(path, gguf_opener(types)));
  check_model(file, false, fmt::format("give {} a file of the first model", option_reference("importance")), model);
  BOOST_OUTCOME_TRY(const MergedImportance data, alone(file));
  BOOST_OUTCOME_TRY(attach_importance(data, {}, {}, model));
  if (!model.problems.empty()) return model.problems.front();
  return ok();
}

// The tensors in both models, matched by name, and those without a match.
struct Matching {
  std::vector<TensorPair> pairs;
  std::vector<UnmatchedTensor> unmatched;
};

std::string why_not(const Tensor& a, const Tensor& b, const Kernels& kernels) {
  if (without_trailing_ones(a.shape()) != without_trailing_ones(b.shape()))
    return fmt::format("its shape is {} in A and {} in B", describe(a.shape()), describe(b.shape()));
  for (const Tensor* tensor : {&a, &b})
    if (a.expression->type != b.expression->type && !is_decodable(tensor->source_type(), kernels))
      return fmt::format("it is {} in A and {} in B, and {} cannot be read as numbers", a.source_type().name,
                         b.source_type().name, tensor->source_type().name);
  return "";
}

Matching match(const Model& a, const Model& b, const Kernels& kernels) {
  using Where = UnmatchedTensor::Where;
  Matching matching;
  std::unordered_map<std::string_view, const Tensor*> left;
  for (const Tensor& tensor : b.tensors) left.emplace(tensor.name, &tensor);
  for (const Tensor& tensor : a.tensors) {
    const auto found = left.find(tensor.name);
    if (found == left.end()) {
      matching.unmatched.push_back({tensor.name, "only in A", Where::kOnlyInA});
      continue;
    }
    if (const std::string why = why_not(tensor, *found->second, kernels); !why.empty())
      matching.unmatched.push_back({tensor.name, why, Where::kInBoth});
    else
      matching.pairs.push_back({&tensor, found->second});
    left.erase(found);
  }
  for (const Tensor& tensor : b.tensors)
    if (left.count(tensor.name)) matching.unmatched.push_back({tensor.name, "only in B", Where::kOnlyInB});
  return matching;
}

// `compared` is null for a pair without elements.
ReportTensor tensor_report(const TensorPair& pair, const StepResult* compared) {
  ReportTensor described;
  described.name = pair.a->name;
  described.shape = pair.a->shape();
  described.source_type = pair.a->expression->type;
  described.type = pair.b->expression->type;
  described.source_bytes = pair.a->source_bytes();
  described.bytes = pair.b->source_bytes();
  described.importance = pair.a->importance != nullptr;
  if (!compared || compared->same_bytes)
    described.state = ErrorState::kExact;
  else if (compared->difference)
    described.state = ErrorState::kMeasured, described.sums = *compared->difference;
  return described;
}

}  // namespace

Result<Comparison> Context::compare(const std::string& path_a, const std::string& path_b,
                                    const ComparisonOptions& options) const {
  if (options.threads > Limits::kMaxThreads)
    return usage_error(fmt::format("{} threads are too many: the maximum is {}", options.threads, Limits::kMaxThreads));
  // Only the tensors of a checkpoint matter here, so its pre-tokenizer need not be known.
  const SourceSettings as_model{{"outtype", std::string(out_type_name(options.out_type))}, {"pre", "default"}};
  const bool is_one_format = fs::path(path_a).extension() == fs::path(path_b).extension();
  const FileForm form = is_one_format ? FileForm::kStored : FileForm::kConverted;
  BOOST_OUTCOME_TRY(Model a, open_model(path_a, as_model, registry(), form));
  BOOST_OUTCOME_TRY(const Model b, open_model(path_b, as_model, registry(), form));
  std::vector<std::string> inputs = kernels().files();
  for (const Model* model : std::initializer_list<const Model*>{&a, &b})
    for (const SourceRef& file : model->files) inputs.push_back(file->path);
  if (!options.importance.empty()) {
    inputs.push_back(options.importance);
    BOOST_OUTCOME_TRY(add_importance(options.importance, kernels_->types(), a));
  }
  if (!options.html.empty()) {  // checked before the work starts
    BOOST_OUTCOME_TRY(check_written({options.html, "page"}, inputs, options.overwrite));
  }
  Matching matching = match(a, b, kernels());
  const Plan plan = make_comparison(a, b, matching.pairs, {.memory = options.memory, .threads = options.threads});
  EngineOptions how;
  how.stop = options.stop;
  if (options.progress)
    how.progress = [&, total = plan.bytes_read()](const Progress& now) { options.progress(now.bytes_read, total); };
  if (memory_budget(plan.limits) < plan.least_memory)
    return usage_error(fmt::format("a memory limit of {} is too small for this comparison",
                                   counted(memory_budget(plan.limits), "byte")),
                       fmt::format("its longest row needs {} bytes: {} or more", plan.least_memory,
                                   option_reference("memory", std::to_string(plan.least_memory))));
  BOOST_OUTCOME_TRY(const RunReport run, run_plan(plan, kernels(), how));
  Comparison comparison;
  for (const Model* model : std::initializer_list<const Model*>{&a, &b})
    comparison.warnings.insert(comparison.warnings.end(), model->warnings.begin(), model->warnings.end());
  Report& report = comparison.report;
  report.comparison = report.measured = true;
  describe_source(plan.source, report);
  report.run = {run.seconds, run.bytes_read, 0, run.peak_budget, run.threads, "", kernels().isa()};
  ReportOutput& output = report.outputs.emplace_back();
  output.files = files_of(b.files);
  output.unmatched = std::move(matching.unmatched);
  auto compared = run.steps.begin();
  for (const TensorPair& pair : matching.pairs)
    output.tensors.push_back(tensor_report(pair, pair.a->shape().elements() == 0 ? nullptr : &*compared++));
  BOOST_OUTCOME_TRY(write_report(report, "", options.html, options.overwrite));
  return comparison;
}

}  // namespace ggufmill
