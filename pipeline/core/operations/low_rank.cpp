#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

// Number of values of A, in double precision, that are kept while rows are computed: 256 KiB, unless 256 columns of A
// are more.
constexpr std::uint64_t kValuesAtOnce = 1 << 15, kMinColumns = 256;

bool has_input(const Expression& node) { return node.inputs.size() % 2 == 1; }

// The inputs of one product.
struct Pair {
  const Expression &a, &b;
  double scale;
  std::uint64_t rank() const { return b.shape.dims[0]; }
};

Pair pair_of(const Expression& node, std::size_t number) {
  const std::size_t a = 2 * number + (has_input(node) ? 1 : 0);
  return {*node.inputs[a], *node.inputs[a + 1], node.scales[number]};
}

// Calls f with A and B of each product and the parts of them that `box` needs.
template <class F>
void for_each_factor(const Expression& node, const Box& box, const F& f) {
  for (std::size_t i = 0; i < node.scales.size(); ++i) {
    const Pair pair = pair_of(node, i);
    Box of_a = box, of_b = box;
    of_a.first[1] = of_b.first[0] = 0;
    of_a.count[1] = of_b.count[0] = pair.rank();
    f(pair.a, of_a);
    f(pair.b, of_b);
  }
}

// Computes part of the rows of one matrix.
class RowsOfMatrix {
 public:
  RowsOfMatrix(const Expression& node, RowMaterial& material) : node_(node), material_(material) {
    std::uint64_t ranks = 0, most = 1;
    for (std::size_t i = 0; i < node.scales.size(); ++i) {
      ranks += pair_of(node, i).rank();
      most = std::max(most, pair_of(node, i).rank());
    }
    columns_ = std::max(kMinColumns, kValuesAtOnce / ranks / kMinColumns * kMinColumns);
    columns_ = std::min(columns_, node.shape.columns());
    a_.resize(columns_ * ranks);
    b_.resize(most);
    values_.resize(columns_);
    product_.resize(columns_);
    sum_.resize(columns_);
  }

  // `box` has rows of one matrix, which lie at `into`.
  Status put(const Box& box, std::byte* into, const Layout& layout) {
    Box part = box;
    for (std::uint64_t done = 0; done < box.count[0]; done += part.count[0]) {
      part.first[0] = box.first[0] + done;
      part.count[0] = std::min(columns_, box.count[0] - done);
      BOOST_OUTCOME_TRY(read_a(part));
      for (std::uint64_t row = 0; row < box.count[1]; ++row) {
        Box one = part;
        one.first[1] += row;
        one.count[1] = 1;
        BOOST_OUTCOME_TRY(compute(one));
        scatter(reinterpret_cast<const std::byte*>(values_.data()), part.count[0], sizeof(float),
                into + row * layout.step[1] + done * layout.step[0], layout.step[0]);
      }
    }
    return ok();
  }

 private:
  Status read(const Expression& input, const Box& box, float* into) {
    return put_rows(input, box, reinterpret_cast<std::byte*>(into), packed_layout(*input.type, box), material_);
  }

  // Reads the columns of A of all products, one row after another.
  Status read_a(const Box& box) {
    double* next = a_.data();
    for (std::size_t i = 0; i < node_.scales.size(); ++i) {
      const Pair pair = pair_of(node_, i);
      for (std::uint64_t k = 0; k < pair.rank(); ++k) {
        Box row = box;
        row.first[1] = k;
        row.count[1] = 1;
        BOOST_OUTCOME_TRY(read(pair.a, row, values_.data()));
        next = std::copy_n(values_.data(), box.count[0], next);
      }
    }
    return ok();
  }

  // Computes part of a row.
  Status compute(const Box& box) {
    const std::uint64_t columns = box.count[0];
    std::fill_n(values_.data(), columns, 0.0f);
    if (has_input(node_)) {
      BOOST_OUTCOME_TRY(read(*node_.inputs[0], box, values_.data()));
    }
    std::copy_n(values_.data(), columns, sum_.data());
    const double* a = a_.data();
    for (std::size_t i = 0; i < node_.scales.size(); ++i) {
      const Pair pair = pair_of(node_, i);
      Box row = box;
      row.first[0] = 0;
      row.count[0] = pair.rank();
      BOOST_OUTCOME_TRY(read(pair.b, row, b_.data()));
      std::fill_n(product_.data(), columns, 0.0);
      for (std::uint64_t k = 0; k < pair.rank(); ++k, a += columns) add(b_[k], a, columns, product_.data());
      add(pair.scale, product_.data(), columns, sum_.data());
    }
    for (std::uint64_t i = 0; i < columns; ++i) values_[i] = static_cast<float>(sum_[i]);
    return ok();
  }

  static void add(double factor, const double* values, std::uint64_t count, double* sums) {
    for (std::uint64_t i = 0; i < count; ++i) sums[i] += factor * values[i];
  }

  const Expression& node_;
  RowMaterial& material_;
  std::uint64_t columns_ = 0;  // at a time
  std::vector<double> a_, product_, sum_;
  std::vector<float> b_, values_;
};

class LowRankOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "low_rank"; }

  void add_ranges(const Expression& node, const Box& box, std::vector<ByteRange>& ranges) const override {
    if (has_input(node)) ggufmill::add_ranges(*node.inputs[0], box, ranges);
    for_each_factor(node, box,
                    [&](const Expression& factor, const Box& part) { ggufmill::add_ranges(factor, part, ranges); });
  }

  ReadBound read_bound(const Expression& node, const Index& count) const override {
    ReadBound bound;
    if (has_input(node)) bound = ggufmill::read_bound(*node.inputs[0], count);
    Box box;
    box.count = count;
    for_each_factor(node, box, [&](const Expression& factor, const Box& part) {
      bound = bound + ggufmill::read_bound(factor, part.count);
    });
    return bound;
  }

  Status put(const Expression& node, const Box& box, std::byte* into, const Layout& layout,
             RowMaterial& material) const override {
    RowsOfMatrix rows(node, material);
    Box matrix = box;
    matrix.count[2] = matrix.count[3] = 1;
    for (std::uint64_t j = 0; j < box.count[3]; ++j)
      for (std::uint64_t i = 0; i < box.count[2]; ++i) {
        matrix.first[2] = box.first[2] + i;
        matrix.first[3] = box.first[3] + j;
        BOOST_OUTCOME_TRY(rows.put(matrix, into + layout.offset + i * layout.step[2] + j * layout.step[3], layout));
      }
    return ok();
  }
};

}  // namespace

const TensorOperation& low_rank_operation() { return the_only<LowRankOperation>(); }

Result<ExpressionRef> expressions::low_rank(ExpressionRef input, ExpressionRef a, ExpressionRef b, double scale) {
  const Shape &of_a = a->shape, &of_b = b->shape;
  const std::uint64_t rank = of_b.dims[0];
  if (of_a.dims[1] != rank || of_a.dims[2] != of_b.dims[2] || of_a.dims[3] != of_b.dims[3])
    return broken(Operation::kLowRank,
                  fmt::format("A of {} and B of {} do not have the same rank", describe(of_a), describe(of_b)));
  if (rank > kMaxLowRank)
    return broken(Operation::kLowRank, fmt::format("a rank of {} is above the limit of {}", rank, kMaxLowRank));
  if (!std::isfinite(scale)) return broken(Operation::kLowRank, "the scale is not finite");
  Shape shape = of_b;
  shape.rank = std::max({of_a.rank, of_b.rank, 2u});
  shape.dims[0] = of_a.dims[0];
  if (input && input->shape.dims != shape.dims)
    return broken(Operation::kLowRank,
                  fmt::format("the product of A of {} and B of {} is {}, but the tensor is {}", describe(of_a),
                              describe(of_b), describe(shape), describe(input->shape)));
  const TypeInfo& f32 = type_named("F32");
  for (ExpressionRef* each : {&input, &a, &b})
    if (*each) {
      BOOST_OUTCOME_TRY(*each, cast(std::move(*each), f32));
    }
  std::vector<ExpressionRef> inputs;
  std::vector<double> scales;
  if (input) shape = input->shape;
  if (input && input->operation == Operation::kLowRank) {  // rounds once
    inputs = input->inputs;
    scales = input->scales;
  } else if (input) {
    inputs.push_back(std::move(input));
  }
  inputs.push_back(std::move(a));
  inputs.push_back(std::move(b));
  scales.push_back(scale);
  Expression node = node_of(Operation::kLowRank, std::move(inputs));
  node.type = &f32;
  node.shape = shape;
  node.scales = std::move(scales);
  return made(std::move(node));
}

}  // namespace ggufmill
