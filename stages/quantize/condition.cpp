#include "stages/quantize/condition.h"

#include <algorithm>

namespace ggufmill {
namespace {

template <class T>
bool among(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

template <class T>
bool unset_or(const std::optional<T>& wanted, const T& value) {
  return !wanted || *wanted == value;
}

bool at_least(const std::optional<std::uint64_t>& wanted, std::uint64_t value) { return !wanted || value >= *wanted; }

bool below(const std::optional<std::uint64_t>& limit, std::uint64_t value) { return !limit || value < *limit; }

bool model_holds(const Condition& c, const ModelFacts& model) {
  return (c.architectures.empty() || among(c.architectures, model.architecture)) &&
         !among(c.other_architectures, model.architecture) && unset_or(c.experts, model.experts) &&
         at_least(c.experts_at_least, model.experts) && at_least(c.head_groups_at_least, model.head_groups()) &&
         unset_or(c.layers, model.layers) && unset_or(c.importance, model.importance) &&
         unset_or(c.grouped_heads, model.heads != model.kv_heads);
}

bool in_group(const Condition& c, const ConditionContext& context) {
  if (c.models.empty()) return true;
  return std::any_of(c.models.begin(), c.models.end(), [&](const std::string& name) {
    const auto group = context.groups.find(name);
    return group != context.groups.end() &&
           std::any_of(group->second.begin(), group->second.end(),
                       [&](const Condition& member) { return model_holds(member, context.model); });
  });
}

bool class_holds(const Condition& c, const TensorFacts& tensor, const ModelFacts& model) {
  return c.classes.empty() || std::any_of(c.classes.begin(), c.classes.end(), [&](const ClassSet& set) {
           return set.contains(tensor.tensor_class, model.tied);
         });
}

bool shape_holds(const Condition& c, const Shape& shape, const TypeInfo* type) {
  // Dimensions of 1 at the end do not count, as in ggml.
  std::uint64_t rank = shape.rank;
  while (rank > 1 && shape.dims[rank - 1] == 1) --rank;
  return below(c.rank_below, rank) && at_least(c.matrices_at_least, shape.dims[2]) &&
         (!c.divisible || *c.divisible == (type && shape.columns() % type->block_elements == 0));
}

bool place_holds(const Condition& c, const TensorFacts& tensor, const ModelFacts& model) {
  return below(c.order_below, tensor.order) && (!c.order || within(*c.order, tensor.order, tensor.kind_count)) &&
         (!c.depth || within(*c.depth, tensor.depth, model.layers));
}

}  // namespace

bool within(Span span, std::uint64_t place, std::uint64_t count) {
  const bool first = place < count / 8;
  const bool last = place >= 7 * count / 8;
  switch (span) {
    case Span::kFirstSixteenth:
      return place < count / 16;
    case Span::kFirstEighth:
      return first;
    case Span::kInner:
      return !first && !last;
    case Span::kSpread:
      return first || last || (place - count / 8) % 3 == 2;
  }
  return false;
}

Result<bool> holds(const Condition& c, const TensorFacts& tensor, const ConditionContext& context) {
  const bool plain = class_holds(c, tensor, context.model) && model_holds(c, context.model) && in_group(c, context) &&
                     shape_holds(c, tensor.tensor->shape(), context.type) && place_holds(c, tensor, context.model) &&
                     (c.from.empty() || among(c.from, context.type));
  if (!plain || !c.match) return plain;
  return c.match->matches(tensor.tensor->name);
}

}  // namespace ggufmill
