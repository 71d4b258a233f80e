#include "stages/importance/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kNamesShown = 3;

std::shared_ptr<const Importance> importance_of(const ImportanceEntry& entry, const Shape& shape,
                                                std::string fingerprint) {
  Importance importance;
  importance.name = entry.name;
  importance.sums = entry.sums.extent();
  if (entry.counts.file) importance.counts = entry.counts.extent();
  importance.calls = entry.calls;
  importance.columns = shape.columns();
  importance.matrices = shape.dims[2];
  importance.fingerprint = std::move(fingerprint);
  return std::make_shared<const Importance>(std::move(importance));
}

// Returns true for token embeddings: their rows are looked up, never multiplied.
bool is_token_embedding(const std::string& name) {
  return name == "token_embd.weight" || name == "per_layer_token_embd.weight";
}

class Coverage {
 public:
  Coverage(const ImportanceFile& file, const Selection& selection, CoveragePolicy policy, Model& model)
      : file_(file), selection_(selection), policy_(policy), model_(model) {}

  Status attach() {
    for (Tensor& tensor : model_.tensors) tensors_.emplace(tensor.name, &tensor);
    for (const ImportanceEntry& entry : file_.entries) {
      BOOST_OUTCOME_TRY(std::string fingerprint, fingerprint_weights(entry));
      const auto at = tensors_.find(entry.name);
      if (at == tensors_.end())
        strangers_.push_back(entry.name);
      else
        give(entry, std::move(fingerprint), *at->second);
    }
    report_strangers();
    return policy_.missing == Missing::kError ? report_missing() : ok();
  }

 private:
  void problem(std::string what, std::string help) {
    model_.problems.push_back(input_error(file_.path, std::move(what), std::move(help)));
  }

  void give(const ImportanceEntry& entry, std::string fingerprint, Tensor& tensor) {
    met_.insert(tensor.name);
    const Shape& shape = tensor.shape();
    std::uint64_t needed = 0;
    if (!__builtin_mul_overflow(shape.columns(), shape.dims[2], &needed) && entry.size() == needed) {
      tensor.importance = importance_of(entry, shape, std::move(fingerprint));
      return;
    }
    const std::string what = fmt::format("the entry of tensor {} has {} values, but the tensor ({}) needs {}",
                                         quoted_name(tensor.name), entry.size(), describe(shape), needed);
    if (is_token_embedding(tensor.name)) {
      model_.warnings.push_back(fmt::format("{}: {}: ignored", file_.path, what));
      return;
    }
    Error fault = input_error(file_.path, what, "recreate the file with this model, or skip the entry: exclude");
    if (tensor.converted())
      model_.problems.push_back(std::move(fault));
    else  // relevant only once a stage decides the type
      tensor.importance_fault = std::make_shared<const Error>(std::move(fault));
  }

  void report_strangers() {
    if (strangers_.empty()) return;
    std::string names;
    for (std::size_t i = 0; i < std::min(strangers_.size(), kNamesShown); ++i)
      names += fmt::format("{}{}", i == 0 ? "" : ", ", quoted_name(strangers_[i]));
    if (strangers_.size() > kNamesShown) names += ", ...";
    if (strangers_.size() == file_.entries.size() && !policy_.any_model)
      problem(fmt::format("none of its {} entries matches a tensor of the model: {}", strangers_.size(), names),
              "it was created with another model, or the tensors were renamed; to allow it: any_model: true");
    else
      model_.warnings.push_back(fmt::format("{}: {} of {} entries match no tensor of the model: {}", file_.path,
                                            strangers_.size(), file_.entries.size(), names));
  }

  Status report_missing() {
    for (const Tensor& tensor : model_.tensors) {
      const bool matrix = tensor.shape().rows() > 1 && tensor.name.ends_with("weight");
      if (tensor.importance || !matrix || is_token_embedding(tensor.name) || met_.count(tensor.name) > 0) continue;
      BOOST_OUTCOME_TRY(const bool wanted, selection_.keeps(tensor.name));
      if (wanted)
        problem(fmt::format("it has no data for tensor {}", quoted_name(tensor.name)),
                "calibrate with more text, exclude the tensor (exclude), or allow it: missing: unweighted");
    }
    return ok();
  }

  const ImportanceFile& file_;
  const Selection& selection_;
  const CoveragePolicy policy_;
  Model& model_;
  std::unordered_map<std::string_view, Tensor*> tensors_;
  std::unordered_set<std::string_view> met_;  // tensors with an entry of any size
  std::vector<std::string> strangers_;        // entries without a tensor
};

}  // namespace

Status attach_importance(const ImportanceFile& file, const Selection& selection, CoveragePolicy policy, Model& model) {
  return Coverage(file, selection, policy, model).attach();
}

}  // namespace ggufmill
