#include "stages/quantize/misfits.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kTensorsShown = 4;

std::string named_rows(const std::vector<const Tensor*>& tensors) {
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), kTensorsShown); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", quoted_name(tensors[i]->name), tensors[i]->shape().columns());
  return tensors.size() > kTensorsShown ? text + ", ..." : text;
}

// Lists the weight types whose blocks divide the row lengths of all `tensors`, by increasing bits per weight.
std::string fitting_types(const std::vector<const Tensor*>& tensors, const Types& known) {
  std::uint64_t divisor = 0;
  for (const Tensor* tensor : tensors) divisor = std::gcd(divisor, tensor->shape().columns());
  std::vector<const TypeInfo*> types;
  for (const TypeInfo* type : known.all()) {
    const bool is_weight = type->is_quantized() || !type->facts.partner.empty();
    if (is_weight && !type->facts.of_activations && divisor % type->block_elements == 0) types.push_back(type);
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const TypeInfo* a, const TypeInfo* b) { return a->bits_per_weight() < b->bits_per_weight(); });
  std::string text;
  for (const TypeInfo* type : types) text += fmt::format("{}{}", text.empty() ? "" : ", ", type->name);
  return text;
}

}  // namespace

void Misfits::add(const Decision& decision, const Tensor& tensor) {
  const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.rule == decision.rule && group.type == decision.wanted && group.named == decision.named;
  });
  if (same != groups_.end())
    same->tensors.push_back(&tensor);
  else
    groups_.push_back({decision.rule, decision.wanted, decision.named, {&tensor}});
}

std::vector<Error> Misfits::errors(const Origin& asked, bool misfit_is_given, const Types& known) const {
  std::vector<Error> errors;
  for (const Group& group : groups_) {
    const bool one = group.tensors.size() == 1;
    const std::string what =
        one ? fmt::format("tensor {} cannot be {}: its rows of {} elements are not a multiple of the block size {}",
                          quoted_name(group.tensors.front()->name), group.type->name,
                          group.tensors.front()->shape().columns(), group.type->block_elements)
            : fmt::format("{} tensors cannot be {}: their rows are not a multiple of the block size {}: {}",
                          group.tensors.size(), group.type->name, group.type->block_elements,
                          named_rows(group.tensors));
    const Origin& origin = group.rule ? group.rule->origin : asked;
    const bool said = group.rule ? group.rule->misfit_is_given : misfit_is_given;
    const char* way = !group.named ? "; choose one: tensors: [{match: ..., type: ...}]"
                      : !said      ? "; or allow another type in its place: misfit: fallback"
                                   : "";
    const std::string fitting =
        fmt::format("types that fit{}: {}", one ? "" : " all of them", fitting_types(group.tensors, known));
    Error error = error_at(origin, what, fitting + way);
    if (!group.named)
      error =
          with_options(std::move(error), fitting + "; choose one: " + option_reference("tensor_type", "PATTERN=TYPE"));
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace ggufmill
