// Applies the operations of a map to the two matrices of an adapter: those on the rows of the weight to B, those on its
// columns to A. Supports the operations that convert_lora_to_gguf.py of llama.cpp (MIT) supports.

#include <fmt/format.h>

#include <algorithm>

#include "stages/huggingface/checkpoint/adapter.h"
#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {
namespace {

// A has dimensions {columns, r, ...} and B {r, rows, ...}. The further dimensions of A are those of B, or all 1: then
// A belongs to all of B.
struct Factors {
  ExpressionRef a, b;
  std::uint32_t rank = 2;  // number of dimensions of the product
  bool swapped = false;

  bool shares_a() const { return a->shape.dims[2] == 1 && a->shape.dims[3] == 1; }
};

Error no_product(const Expression& node, std::string_view why) {
  return input_error({}, fmt::format("{} to {} cannot be applied to the two matrices of an adapter: {}",
                                     name_of(node.operation), describe(node.shape), why));
}

bool is_same(const ExpressionRef& x, const ExpressionRef& y) { return x == y || key_of(*x) == key_of(*y); }

Result<ExpressionRef> swapped_dimensions(const ExpressionRef& input) {
  if (input->operation == Operation::kTranspose && input->shape.rank == 2) return input->inputs[0];
  return expressions::transpose(input, {1, 0});
}

// Returns A with as many matrices as B.
Result<ExpressionRef> a_of_each(const Factors& factors) {
  const std::uint64_t matrices = factors.b->shape.dims[2];
  if (!factors.shares_a() || matrices == 1) return factors.a;
  Shape shape = factors.a->shape;
  shape.rank = 2;
  BOOST_OUTCOME_TRY(const ExpressionRef matrix, expressions::reshape(factors.a, shape));
  return expressions::stack(std::vector<ExpressionRef>(matrices, matrix));
}

class Factoring {
 public:
  explicit Factoring(PairUse use) : use_(use) {}

  Result<Factors> of(const Expression& node) const {
    switch (node.operation) {
      case Operation::kLowRank:
        return product(node);
      case Operation::kCast:
        return of(*node.inputs[0]);
      case Operation::kReshape:
        return reshape(node);
      case Operation::kSlice:
        return slice(node);
      case Operation::kReorderRows:
        return reorder_rows(node);
      case Operation::kTranspose:
        return transpose(node);
      case Operation::kMap:
        return map(node);
      case Operation::kStack:
        return stack(node);
      case Operation::kConcat:
        return concat(node);
      default:
        return no_product(node, "the result is not a product of two matrices");
    }
  }

 private:
  static Result<Factors> product(const Expression& node) {
    if (node.inputs.size() != 2) return no_product(node, "the result is not a product of two matrices");
    const auto stored = [](const ExpressionRef& input) {
      return input->operation == Operation::kCast ? input->inputs[0] : input;
    };
    return Factors{stored(node.inputs[0]), stored(node.inputs[1]), node.shape.rank, false};
  }

  Result<std::vector<Factors>> of_inputs(const Expression& node) const {
    std::vector<Factors> all;
    for (const ExpressionRef& input : node.inputs) {
      BOOST_OUTCOME_TRY(all.emplace_back(), of(*input));
      if (all.back().swapped != all[0].swapped || all.back().b->shape.dims[0] != all[0].b->shape.dims[0])
        return no_product(node, "the ranks of the parts differ");
    }
    return all;
  }

  // Returns the number of dimensions into which the columns are cut, reordered and then joined again; 0 if `node` does
  // something else. `node` is a reshape of a transpose of a reshape.
  static std::uint32_t reordered_columns(const Expression& node) {
    const Expression& turned = *node.inputs[0];
    if (turned.operation != Operation::kTranspose || turned.inputs[0]->operation != Operation::kReshape) return 0;
    const Expression &cut = *turned.inputs[0], &whole = *cut.inputs[0];
    if (whole.shape.dims != node.shape.dims) return 0;
    std::uint32_t count = 0;
    std::uint64_t columns = 1;
    while (count < cut.shape.rank && columns < whole.shape.dims[0]) columns *= cut.shape.dims[count++];
    if (columns != whole.shape.dims[0] || count == cut.shape.rank) return 0;
    for (std::uint32_t i = 0; i < cut.shape.rank; ++i) {
      if (i < count ? turned.order[i] >= count : turned.order[i] != i) return 0;
      if (i >= count && cut.shape.dims[i] != whole.shape.dims[i + 1 - count]) return 0;
    }
    return count;
  }

  // Reorders the columns of A.
  Result<Factors> reorder_columns(const Expression& node, std::uint32_t count) const {
    const Expression &turned = *node.inputs[0], &cut = *turned.inputs[0];
    BOOST_OUTCOME_TRY(Factors factors, of(*cut.inputs[0]));
    if (!factors.shares_a()) return no_product(node, "it reorders the columns of different matrices");
    Shape shape = cut.shape;
    shape.rank = count + 1;
    for (std::uint32_t i = count; i < std::size(shape.dims); ++i) shape.dims[i] = 1;
    shape.dims[count] = factors.a->shape.dims[1];
    std::vector<std::uint32_t> order(turned.order.begin(), turned.order.begin() + count);
    order.push_back(count);
    const Shape before = factors.a->shape;
    BOOST_OUTCOME_TRY(factors.a, expressions::reshape(factors.a, shape));
    BOOST_OUTCOME_TRY(factors.a, expressions::transpose(factors.a, order));
    BOOST_OUTCOME_TRY(factors.a, expressions::reshape(factors.a, before));
    return factors;
  }

  Result<Factors> reshape(const Expression& node) const {
    if (const std::uint32_t count = reordered_columns(node); count != 0) return reorder_columns(node, count);
    BOOST_OUTCOME_TRY(Factors factors, of(*node.inputs[0]));
    if (node.shape.rank < 2 || node.shape.dims[0] != node.inputs[0]->shape.dims[0])
      return no_product(node, "it changes the length of the rows");
    factors.rank = node.shape.rank;
    if (node.shape.dims == node.inputs[0]->shape.dims) return factors;
    if (!factors.shares_a()) return no_product(node, "it joins or cuts matrices");
    Shape shape = node.shape;
    shape.dims[0] = factors.b->shape.dims[0];
    BOOST_OUTCOME_TRY(factors.b, expressions::reshape(factors.b, shape));
    return factors;
  }

  Result<Factors> slice(const Expression& node) const {
    BOOST_OUTCOME_TRY(Factors factors, of(*node.inputs[0]));
    const std::uint64_t count = node.shape.dims[node.axis];
    const bool cuts_a = node.axis == 0 || (node.axis > 1 && !factors.shares_a());
    if (cuts_a) {
      BOOST_OUTCOME_TRY(factors.a, expressions::slice(factors.a, node.axis, node.first, count));
    }
    if (node.axis != 0) {
      BOOST_OUTCOME_TRY(factors.b, expressions::slice(factors.b, node.axis, node.first, count));
    }
    return factors;
  }

  Result<Factors> reorder_rows(const Expression& node) const {
    BOOST_OUTCOME_TRY(Factors factors, of(*node.inputs[0]));
    BOOST_OUTCOME_TRY(factors.b, expressions::reorder_rows(factors.b, node.factors, node.order));
    return factors;
  }

  Result<Factors> transpose(const Expression& node) const {
    BOOST_OUTCOME_TRY(Factors factors, of(*node.inputs[0]));
    if (node.order[0] == 0) {
      if (!factors.shares_a()) return no_product(node, "it exchanges rows of different matrices");
      BOOST_OUTCOME_TRY(factors.b, expressions::transpose(factors.b, node.order));
      return factors;
    }
    if (node.order.size() == 2) {
      BOOST_OUTCOME_TRY(ExpressionRef a, swapped_dimensions(factors.b));
      BOOST_OUTCOME_TRY(factors.b, swapped_dimensions(factors.a));
      factors.a = std::move(a);
      factors.swapped = !factors.swapped;
      return factors;
    }
    if (use_ == PairUse::kMerged && node.order == std::vector<std::uint32_t>{1, 0, 2})
      return transposed_matrices(std::move(factors));
    return no_product(node, "it exchanges columns with another dimension");
  }

  // Transposes every matrix of a stack. llama.cpp does not apply adapters to such weights (attn_k_b).
  static Result<Factors> transposed_matrices(Factors factors) {
    BOOST_OUTCOME_TRY(ExpressionRef a, expressions::transpose(factors.b, {1, 0, 2}));
    BOOST_OUTCOME_TRY(factors.a, a_of_each(factors));
    BOOST_OUTCOME_TRY(factors.b, expressions::transpose(factors.a, {1, 0, 2}));
    factors.a = std::move(a);
    return factors;
  }

  // Multiplies B, as the reference does: an F16 matrix in F16.
  Result<Factors> map(const Expression& node) const {
    if (node.map->name != "multiply") return no_product(node, "only products with a number are possible");
    BOOST_OUTCOME_TRY(Factors factors, of(*node.inputs[0]));
    const bool half = factors.b->type->name == "F16";
    BOOST_OUTCOME_TRY(factors.b, to_type(factors.b, "F32"));
    BOOST_OUTCOME_TRY(factors.b, expressions::map(factors.b, *node.map, node.parameter));
    if (half) {
      BOOST_OUTCOME_TRY(factors.b, to_type(factors.b, "F16"));
    }
    return factors;
  }

  // Returns the matrices of all parts in one type.
  static Result<std::vector<ExpressionRef>> in_one_type(const std::vector<Factors>& parts,
                                                        ExpressionRef Factors::*matrix) {
    std::vector<ExpressionRef> all;
    for (const Factors& part : parts) all.push_back(part.*matrix);
    const bool alike = std::ranges::all_of(all, [&](const ExpressionRef& one) { return one->type == all[0]->type; });
    if (!alike)
      for (ExpressionRef& one : all) {
        BOOST_OUTCOME_TRY(one, to_type(one, "F32"));
      }
    return all;
  }

  Result<Factors> stack(const Expression& node) const {
    BOOST_OUTCOME_TRY(const std::vector<Factors> parts, of_inputs(node));
    Factors all = parts[0];
    BOOST_OUTCOME_TRY(std::vector<ExpressionRef> a, in_one_type(parts, &Factors::a));
    BOOST_OUTCOME_TRY(all.a, expressions::stack(std::move(a)));
    BOOST_OUTCOME_TRY(std::vector<ExpressionRef> b, in_one_type(parts, &Factors::b));
    BOOST_OUTCOME_TRY(all.b, expressions::stack(std::move(b)));
    all.rank = node.shape.rank;
    return all;
  }

  Result<Factors> concat(const Expression& node) const {
    BOOST_OUTCOME_TRY(const std::vector<Factors> parts, of_inputs(node));
    Factors all = parts[0];
    const auto is_shared = [&](ExpressionRef Factors::*matrix) {
      return std::ranges::all_of(parts, [&](const Factors& part) { return is_same(part.*matrix, all.*matrix); });
    };
    const bool joins_a = node.axis == 0 || (node.axis > 1 && !all.shares_a());
    if (!joins_a && !is_shared(&Factors::a)) return no_product(node, "the parts are adapted separately");
    if (node.axis == 0 && !is_shared(&Factors::b)) return no_product(node, "the parts are adapted separately");
    if (joins_a) {
      BOOST_OUTCOME_TRY(std::vector<ExpressionRef> a, in_one_type(parts, &Factors::a));
      BOOST_OUTCOME_TRY(all.a, expressions::concat(std::move(a), node.axis));
    }
    if (node.axis != 0) {
      BOOST_OUTCOME_TRY(std::vector<ExpressionRef> b, in_one_type(parts, &Factors::b));
      BOOST_OUTCOME_TRY(all.b, expressions::concat(std::move(b), node.axis));
    }
    return all;
  }

  PairUse use_;
};

// Returns the matrix with as many dimensions as the product.
Result<ExpressionRef> with_rank(ExpressionRef matrix, std::uint32_t rank) {
  if (matrix->shape.rank == rank) return matrix;
  Shape shape = matrix->shape;
  shape.rank = rank;
  return expressions::reshape(std::move(matrix), shape);
}

}  // namespace

Result<LowRankPair> pair_of(const Expression& values, PairUse use) {
  BOOST_OUTCOME_TRY(Factors factors, Factoring(use).of(values));
  if (use == PairUse::kMerged) {
    BOOST_OUTCOME_TRY(factors.a, a_of_each(factors));
  }
  LowRankPair pair;
  BOOST_OUTCOME_TRY(pair.a, with_rank(factors.a, factors.rank));
  BOOST_OUTCOME_TRY(pair.b, with_rank(factors.b, factors.rank));
  pair.swapped = factors.swapped;
  return pair;
}

}  // namespace ggufmill::huggingface
