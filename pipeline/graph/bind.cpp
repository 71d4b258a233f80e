#include "pipeline/graph/bind.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

Error no_kernel(const std::string& tensor, std::uint32_t operation, const TypeInfo& type, const Kernels& kernels) {
  Error error = kernels.missing(operation, type.id);
  error.what = fmt::format("tensor '{}': {}", tensor, error.what);
  return error;
}

// Returns a null kernel for F32.
Result<KernelChoice> decoder(const TypeInfo& type, const std::string& tensor, const Kernels& kernels) {
  if (type.is_f32()) return KernelChoice{};
  const KernelChoice* decode = kernels.decode(type.id);
  if (!decode) return no_kernel(tensor, GGUFMILL_DECODE, type, kernels);
  return *decode;
}

Result<KernelChoice> encoder(const TypeInfo& type, const std::string& tensor, const Kernels& kernels) {
  const KernelChoice* encode = kernels.encode(type.id);
  if (!encode) return no_kernel(tensor, GGUFMILL_ENCODE, type, kernels);
  return *encode;
}

class StepBinder {
 public:
  StepBinder(const Plan& plan, const Step& step, const Kernels& kernels) : plan_(plan), step_(step), kernels_(kernels) {
    bound_.step = &step;
    bound_.row_bytes = step.expression->row_bytes();
  }

  Result<BoundStep> bind() {
    for (const Encoding& encoding : step_.encodings) {
      BOOST_OUTCOME_TRY(add(encoding));
    }
    BOOST_OUTCOME_TRY(check_casts(*step_.expression, step_.name, kernels_));
    if (step_.compared) {
      BOOST_OUTCOME_TRY(check_casts(*step_.compared, step_.name, kernels_));
      bind_comparison();
    }
    if (!bound_.computes) return std::move(bound_);
    const StepCost cost(plan_, step_);
    bound_.long_row_bytes = cost.long_row_bytes();
    bound_.measured_row_bytes = cost.measured_row_bytes();
    BOOST_OUTCOME_TRY(bound_.decode, decoder(*step_.expression->type, step_.name, kernels_));
    return std::move(bound_);
  }

 private:
  Status add(const Encoding& encoding) {
    BoundEncoding bound;
    bound.encoding = &encoding;
    bound.name = &step_.name;
    if (!encoding.places.empty()) {
      const Place& place = encoding.places.front();
      bound.name = &plan_.outputs[place.output].tensors[place.tensor].name;
    }
    bound.row_bytes = step_.expression->shape.columns() / encoding.type->block_elements * encoding.type->block_bytes;
    if (encoding.type != step_.expression->type) {
      bound_.computes = true;
      BOOST_OUTCOME_TRY(choose(bound));
    } else if (encoding.big_endian) {
      bound.kind = EncodingKind::kSwapped;
    }
    bound_.encodings.push_back(bound);
    return ok();
  }

  Status choose(BoundEncoding& bound) {
    const TypeInfo& type = *bound.encoding->type;
    if (type.is_f32()) {
      bound.kind = EncodingKind::kDecoded;
      if (!bound.encoding->big_endian) bound_.f32_encoding = bound_.encodings.size();
      return ok();
    }
    bound.kind = EncodingKind::kEncoded;
    BOOST_OUTCOME_TRY(bound.encode, encoder(type, *bound.name, kernels_));
    const std::uint32_t flags = bound.encode.kernel->flags;
    const auto& importance = bound.encoding->importance;
    if (importance && flags & (GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE))
      bound.importance = index_of(importance);
    if (!importance && flags & GGUFMILL_NEEDS_IMPORTANCE)
      return usage_error(fmt::format("tensor '{}': {} needs importance weights", *bound.name, type.name),
                         "add an `importance` stage, or choose another type for this tensor");
    if (!plan_.report.error) return ok();
    BOOST_OUTCOME_TRY(bound.decode, decoder(type, *bound.name, kernels_));
    if (importance) bound.weights = index_of(importance);
    return ok();
  }

  // Types that cannot be decoded are compared by their bytes only.
  void bind_comparison() {
    const TypeInfo &a = *step_.expression->type, &b = *step_.compared->type;
    bound_.computes = is_decodable(a, kernels_) && is_decodable(b, kernels_);
    if (!bound_.computes) return;
    if (!b.is_f32()) bound_.decode_compared = *kernels_.decode(b.id);
    if (step_.importance) bound_.importances.push_back(step_.importance);
  }

  // Returns the index of `importance` in the step's list, which contains it once however many encodings use it.
  std::size_t index_of(const std::shared_ptr<const Importance>& importance) {
    const auto found = std::ranges::find(bound_.importances, importance);
    const auto index = static_cast<std::size_t>(found - bound_.importances.begin());
    if (found == bound_.importances.end()) bound_.importances.push_back(importance);
    return index;
  }

  const Plan& plan_;
  const Step& step_;
  const Kernels& kernels_;
  BoundStep bound_;
};

}  // namespace

Status check_casts(const Expression& expression, const std::string& tensor, const Kernels& kernels) {
  for (const ExpressionRef& input : expression.inputs) {
    if (expression.operation == Operation::kCast) {
      BOOST_OUTCOME_TRY(decoder(*input->type, tensor, kernels));
      if (!expression.type->is_f32()) {
        BOOST_OUTCOME_TRY(encoder(*expression.type, tensor, kernels));
      }
    }
    BOOST_OUTCOME_TRY(check_casts(*input, tensor, kernels));
  }
  return ok();
}

bool is_decodable(const TypeInfo& type, const Kernels& kernels) { return type.is_f32() || kernels.decode(type.id); }

Result<std::vector<BoundStep>> bind_kernels(const Plan& plan, const Kernels& kernels) {
  std::vector<BoundStep> all;
  all.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    BOOST_OUTCOME_TRY(BoundStep bound, StepBinder(plan, step, kernels).bind());
    // Values that are only checked are processed in tiles of the same number of bytes.
    const std::uint64_t row = bound.computes ? step.expression->shape.columns() * sizeof(float) : bound.row_bytes;
    bound.tile_rows = std::max<std::uint64_t>(kTileBytes / std::max<std::uint64_t>(row, 1), 1);
    all.push_back(std::move(bound));
  }
  return all;
}

}  // namespace ggufmill
