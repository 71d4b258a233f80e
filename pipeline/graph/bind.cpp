#include "pipeline/graph/bind.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

Error no_kernel(const std::string& tensor, std::uint32_t operation, const TypeInfo& type, const Kernels& kernels,
                const EncoderMethod& method = reference_method()) {
  Error error = kernels.missing(operation, type.id, method);
  error.what = fmt::format("tensor '{}': {}", tensor, error.what);
  return error;
}

// Returns a null kernel for F32.
Result<KernelChoice> decoder_of(const TypeInfo& type, const std::string& tensor, const Kernels& kernels) {
  if (type.is_f32()) return KernelChoice{};
  const KernelChoice* decode = kernels.decode(type.id);
  if (!decode) return no_kernel(tensor, GGUFMILL_DECODE, type, kernels);
  return *decode;
}

Result<KernelChoice> encoder_of(const TypeInfo& type, const std::string& tensor, const Kernels& kernels,
                                const EncoderMethod& method = reference_method()) {
  const KernelChoice* encode = kernels.encode(type.id, method);
  if (!encode) return no_kernel(tensor, GGUFMILL_ENCODE, type, kernels, method);
  return *encode;
}

// Checks that kernels exist for all casts within an expression.
Status check_casts(const Expression& expression, const std::string& tensor, const Kernels& kernels) {
  for (const ExpressionRef& input : expression.inputs) {
    if (expression.operation == Operation::kCast) {
      BOOST_OUTCOME_TRY(decoder_of(*input->type, tensor, kernels));
      if (!expression.type->is_f32()) {
        BOOST_OUTCOME_TRY(encoder_of(*expression.type, tensor, kernels));
      }
    }
    BOOST_OUTCOME_TRY(check_casts(*input, tensor, kernels));
  }
  return ok();
}

class StepBinder {
 public:
  StepBinder(const Plan& plan, const StepLayout& layout, const Kernels& kernels)
      : plan_(plan), layout_(layout), step_(layout.step()), kernels_(kernels) {
    bound_.layout = &layout;
    bound_.step = &step_;
    bound_.tile_rows = layout.tile_rows();
    bound_.computes = layout.converts();
  }

  Result<BoundStep> bind() {
    for (std::size_t i = 0; i < step_.encodings.size(); ++i) {
      BOOST_OUTCOME_TRY(add(step_.encodings[i], layout_.encodings()[i]));
    }
    BOOST_OUTCOME_TRY(check_casts(*step_.expression, step_.name, kernels_));
    if (step_.compared) {
      BOOST_OUTCOME_TRY(check_casts(*step_.compared, step_.name, kernels_));
      bind_comparison();
    }
    if (bound_.computes) {
      BOOST_OUTCOME_TRY(bound_.decode, decoder_of(*step_.expression->type, step_.name, kernels_));
    }
    return std::move(bound_);
  }

 private:
  Status add(const Encoding& encoding, const EncodingLayout& layout) {
    BoundEncoding bound;
    bound.layout = &layout;
    bound.encoding = &encoding;
    bound.name = &step_.name;
    if (!encoding.places.empty()) {
      const Place& place = encoding.places.front();
      bound.name = &plan_.outputs[place.output].tensors[place.tensor].name;
    }
    if (layout.work == Work::kEncode) {
      BOOST_OUTCOME_TRY(bind_encoder(bound));
    }
    bound_.encodings.push_back(bound);
    return ok();
  }

  Status bind_encoder(BoundEncoding& bound) {
    const TypeInfo& type = bound.rows_type();
    const Encoder& encoder = bound.encoding->encoder;
    const EncoderMethod& method = encoder.searches()        ? search_method()
                                  : encoder.is_covariance() ? reference_method()
                                                            : *encoder.method;
    BOOST_OUTCOME_TRY(bound.encode, encoder_of(type, *bound.name, kernels_, method));
    bound.metric = layout_.metric_of(*bound.encoding);
    const std::uint32_t flags = bound.encode.kernel->flags;
    const auto& importance = bound.encoding->importance;
    if (encoder.lattice == Lattice::kAuto) bound.lattice = Kernels::lattice(type.id);
    if (importance && flags & (GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE))
      bound.importance = index_of(importance);
    if (!importance && flags & GGUFMILL_NEEDS_IMPORTANCE)
      return usage_error(
          fmt::format("tensor '{}': {} needs importance weights", *bound.name, bound.encoding->type->name),
          "add an `importance` stage, or choose another type for this tensor");
    if (!bound.layout->is_measured && !bound.lattice && !bound.metric) return ok();
    BOOST_OUTCOME_TRY(bound.decode, decoder_of(type, *bound.name, kernels_));
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
  const StepLayout& layout_;
  const Step& step_;
  const Kernels& kernels_;
  BoundStep bound_;
};

}  // namespace

bool is_decodable(const TypeInfo& type, const Kernels& kernels) {
  return type.is_f32() || kernels.decode(plain_type(type).id);
}

Result<std::vector<BoundStep>> bind_kernels(const Plan& plan, std::span<const StepLayout> layouts,
                                            const Kernels& kernels) {
  std::vector<BoundStep> all;
  all.reserve(layouts.size());
  for (const StepLayout& layout : layouts) {
    BOOST_OUTCOME_TRY(all.emplace_back(), StepBinder(plan, layout, kernels).bind());
  }
  return all;
}

}  // namespace ggufmill
