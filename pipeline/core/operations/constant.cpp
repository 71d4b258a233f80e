#include <fmt/format.h>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

class ConstantOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "constant"; }

  ReadBound read_bound(const Expression&, const Index&) const override { return {}; }

  Status put(const Expression& node, const Box& box, std::byte* into, const Layout& layout,
             RowMaterial&) const override {
    for_each_row(box, [&](const Index& at) {
      std::uint64_t element = box.first[0], size = node.shape.dims[0];
      std::byte* place = into + layout.offset;
      for (std::uint32_t d = 1; d < 4; ++d) {
        element += (box.first[d] + at[d]) * size;
        size *= node.shape.dims[d];
        place += at[d] * layout.step[d];
      }
      const auto* from = reinterpret_cast<const std::byte*>(node.values.data() + element);
      scatter(from, box.count[0], sizeof(float), place, layout.step[0]);
    });
    return ok();
  }
};

}  // namespace

const TensorOperation& constant_operation() { return the_only<ConstantOperation>(); }

Result<ExpressionRef> expressions::constant(const Shape& shape, std::vector<float> values) {
  Expression node;
  node.operation = Operation::kConstant;
  node.type = &type_named("F32");
  node.shape = shape;
  node.values = std::move(values);
  BOOST_OUTCOME_TRY(check_shape(node.operation, *node.type, shape));
  if (node.values.size() != shape.elements())
    return broken(node.operation, fmt::format("{} values for {}", node.values.size(), describe(shape)));
  return ExpressionRef(std::make_shared<const Expression>(std::move(node)));
}

}  // namespace ggufmill
