#include "stages/huggingface/map/restored_checkpoint.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {
namespace {

// Returns the inverse of a permutation.
std::vector<std::uint32_t> inverse_of(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> inverse(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  return inverse;
}

class Finder {
 public:
  explicit Finder(ExpressionRef unknown) : unknown_(std::move(unknown)) {}

  // Propagates the known values of `node` to the nodes that it was made of.
  Status learn(const ExpressionRef& node, ExpressionRef values) {
    BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), node->shape));
    if (node == unknown_) {
      found_ = std::move(values);
      return ok();
    }
    switch (node->operation) {
      case Operation::kReshape:
        break;
      case Operation::kReorderRows: {
        std::vector<std::uint64_t> factors;
        for (const std::uint32_t axis : node->order) factors.push_back(node->factors[axis]);
        BOOST_OUTCOME_TRY(values,
                          expressions::reorder_rows(std::move(values), std::move(factors), inverse_of(node->order)));
        break;
      }
      case Operation::kTranspose: {
        BOOST_OUTCOME_TRY(values, expressions::transpose(std::move(values), inverse_of(node->order)));
        break;
      }
      case Operation::kMap: {
        // Computed in single precision, like the original: for an F32 checkpoint, the last bits may differ.
        const bool added = node->map == find_map_function("add");
        const bool multiplied = node->map == find_map_function("multiply") && node->parameter != 0;
        if (!added && !multiplied && node->map != find_map_function("negate_exp"))
          return input_error({}, fmt::format("{} cannot be undone", node->map->name));
        const MapFunction& back = added || multiplied ? *node->map : *find_map_function("log_negated");
        const float parameter = added ? -node->parameter : multiplied ? 1 / node->parameter : 0;
        BOOST_OUTCOME_TRY(values, to_type(std::move(values), "F32"));
        BOOST_OUTCOME_TRY(values, expressions::map(std::move(values), back, parameter));
        break;
      }
      case Operation::kSlice:
        return add_part(*node, std::move(values));
      case Operation::kConcat:
        return learn_joined(*node, values);
      default:
        return input_error({}, fmt::format("{} cannot be undone", name_of(node->operation)));
    }
    return learn(node->inputs[0], std::move(values));
  }

  Result<ExpressionRef> result() const {
    if (found_) return found_;
    for (const auto& [key, whole] : wholes_)
      if (!whole.is_known)
        return input_error({}, fmt::format("of its dimension {} of {}, only {} are available", whole.axis,
                                           whole.node->shape.dims[whole.axis], whole.count));
    return input_error({}, "none of it is available");
  }

 private:
  // A node that slices were taken from, and the slices seen so far.
  struct Whole {
    ExpressionRef node;
    std::uint32_t axis = 0;
    std::uint64_t count = 0;                       // elements known along the axis
    std::map<std::uint64_t, ExpressionRef> parts;  // by start position
    bool is_known = false;
  };

  Status add_part(const Expression& slice, ExpressionRef values) {
    Whole& whole = wholes_[key_of(*slice.inputs[0])];
    if (!whole.node) whole.node = slice.inputs[0], whole.axis = slice.axis;
    if (whole.axis != slice.axis)
      return input_error({}, fmt::format("it is split along dimension {} and along {}", whole.axis, slice.axis));
    const std::uint64_t count = slice.shape.dims[slice.axis];
    if (count == 0 || !whole.parts.emplace(slice.first, std::move(values)).second) return ok();
    whole.count += count;
    std::vector<ExpressionRef> parts;
    std::uint64_t end = 0;
    for (const auto& [first, part] : whole.parts) {
      if (first != end) return ok();  // more parts are to come
      parts.push_back(part);
      end += part->shape.dims[whole.axis];
    }
    if (end != whole.node->shape.dims[whole.axis]) return ok();
    whole.is_known = true;
    BOOST_OUTCOME_TRY(ExpressionRef all, together(std::move(parts), whole.axis));
    return learn(whole.node, std::move(all));
  }

  // Concatenates the parts with a common type: some of them may have been computed and are F32.
  static Result<ExpressionRef> together(std::vector<ExpressionRef> parts, std::uint32_t axis) {
    for (std::size_t i = 1; i < parts.size(); ++i)
      if (parts[i]->type != parts[0]->type) {
        for (ExpressionRef& part : parts) {
          BOOST_OUTCOME_TRY(part, to_type(std::move(part), "F32"));
        }
        break;
      }
    return expressions::concat(std::move(parts), axis);
  }

  Status learn_joined(const Expression& joined, const ExpressionRef& values) {
    std::uint64_t first = 0;
    for (const ExpressionRef& part : joined.inputs) {
      const std::uint64_t count = part->shape.dims[joined.axis];
      BOOST_OUTCOME_TRY(ExpressionRef own, expressions::slice(values, joined.axis, first, count));
      BOOST_OUTCOME_TRY(learn(part, std::move(own)));
      first += count;
    }
    return ok();
  }

  ExpressionRef unknown_, found_;
  std::map<std::string, Whole> wholes_;  // by key, because equal expressions may exist more than once
};

}  // namespace

Result<ExpressionRef> unknown_tensor(const Shape& shape) {
  const TypeInfo& f16 = type_named("F16");
  BOOST_OUTCOME_TRY(const std::uint64_t bytes, bytes_of(f16, shape.elements()));
  BOOST_OUTCOME_TRY(ExpressionRef nowhere, expressions::extent(f16, shape, {nullptr, 0, bytes, false}));
  // An unconverted extent would turn into other extents when it is reshaped.
  return to_type(std::move(nowhere), "F32");
}

Result<ExpressionRef> find_values(const ExpressionRef& unknown, const std::vector<KnownValues>& known) {
  Finder finder(unknown);
  for (const KnownValues& each : known) {
    BOOST_OUTCOME_TRY(finder.learn(each.made, each.values));
  }
  return finder.result();
}

}  // namespace ggufmill::huggingface
