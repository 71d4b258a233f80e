#include "stages/importance/covariance_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "pipeline/core/importance.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kSumsAtOnce = 4096;

// Returns the experts whose sums are all 0, in ascending order.
Result<std::vector<std::uint64_t>> experts_without_sums(const CovarianceInput& input) {
  std::vector<std::uint64_t> without;
  std::vector<float> sums;
  for (std::uint64_t expert = 0; expert < input.experts(); ++expert) {
    bool is_zero = true;
    for (std::uint64_t first = 0; first < input.columns() && is_zero; first += sums.size()) {
      sums.resize(std::min<std::uint64_t>(kSumsAtOnce, input.columns() - first));
      BOOST_OUTCOME_TRY(input.read_sums(expert, first, sums));
      is_zero = std::ranges::all_of(sums, [](float sum) { return sum == 0; });
    }
    if (is_zero) without.push_back(expert);
  }
  return without;
}

void attach(const CovarianceFile& file, const CovarianceInput& input, const std::vector<std::uint64_t>& without,
            Tensor& tensor, Model& model) {
  const Shape& shape = tensor.shape();
  if (shape.columns() != input.columns() || shape.dims[2] != input.experts()) {
    model.problems.push_back(input_error(
        file.importance.path,
        fmt::format("the input of tensor {} has {} columns of {}, but the tensor is {}", quoted_name(tensor.name),
                    input.columns(), counted(input.experts(), "expert"), describe(shape)),
        "collect the covariance with this model, or skip the entry: exclude"));
    return;
  }
  auto covariance = std::make_shared<Covariance>(input.covariance);
  for (std::uint64_t expert = 0; expert < input.experts(); ++expert)
    if (tensor.importance->is_substituted(expert) || std::ranges::binary_search(without, expert))
      covariance->unused.push_back(expert);
  if (covariance->unused.size() == input.experts()) return;
  if (!covariance->unused.empty())
    covariance->note =
        fmt::format("{} of {} experts have no covariance: search", covariance->unused.size(), input.experts());
  tensor.covariance = std::move(covariance);
}

}  // namespace

Status attach_covariance(const CovarianceFile& file, Model& model) {
  std::unordered_map<std::string_view, Tensor*> tensors;
  for (Tensor& tensor : model.tensors) tensors.emplace(tensor.name, &tensor);
  const auto is_known = [&](const std::string& name) { return tensors.contains(name); };
  if (std::ranges::none_of(file.inputs,
                           [&](const auto& input) { return std::ranges::any_of(input.tensors, is_known); }))
    model.problems.push_back(
        input_error(file.importance.path,
                    fmt::format("no tensor of the model has one of its {}, for example that of {}",
                                counted(file.inputs.size(), "input"), quoted_name(file.inputs.front().owner)),
                    "give the covariance file of this model, which ggufmill-calibrate writes, or none"));
  for (const CovarianceInput& input : file.inputs) {
    BOOST_OUTCOME_TRY(const std::vector<std::uint64_t> without, experts_without_sums(input));
    for (const std::string& name : input.tensors)
      if (const auto found = tensors.find(name); found != tensors.end() && found->second->importance)
        attach(file, input, without, *found->second, model);
  }
  return ok();
}

}  // namespace ggufmill
