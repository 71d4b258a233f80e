#include "pipeline/plan/step_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "pipeline/core/covariance.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Returns the values from which a tensor is written: its expression, but with the rows of the type that is written, if
// only their order differs, and with separated rows if they are converted.
ExpressionRef values_of(const Tensor& tensor) {
  const TypeInfo &from = *tensor.expression->type, &to = *tensor.type;
  if (&from == &to) return tensor.expression;
  const bool has_same_rows = &plain_type(from) == &plain_type(to);
  return expressions::interleave(tensor.expression, has_same_rows ? to : plain_type(from)).value();
}

std::string fingerprint_of(const Encoding& encoding) {
  return encoding.importance ? encoding.importance->fingerprint : "";
}

std::string key_of_covariance(const Encoding& encoding) {
  return encoding.covariance ? encoding.covariance->key() : "";
}

Error wrong_step(const std::string& tensor, const std::string& what) {
  return {
      ExitCode::kInternal, "", fmt::format("tensor {}: the plan {}", quoted_name(tensor), what), "nothing was written",
      "this is a bug in ggufmill: please report it with the pipeline file; outputs made one at a time may avoid it"};
}

}  // namespace

Encoder used_encoder(const Tensor& tensor) {
  return encoder_for(tensor.encoder, *tensor.type, tensor.importance != nullptr, tensor.covariance.get());
}

StepMaker::StepMaker(std::span<const Model> source) {
  for (const Model& model : source)
    for (const Tensor& tensor : model.tensors) step_of(tensor.name, tensor.expression);
}

void StepMaker::add(const Tensor& tensor, const Place& place, std::uint64_t bytes, bool big_endian) {
  if (tensor.expression->bytes() == 0) return;
  const ExpressionRef values = values_of(tensor);
  Step& step = steps_[step_of(tensor.name, values)];
  const bool encodes = values->type != tensor.type && !tensor.type->is_f32();
  const std::string weights = encodes && tensor.importance ? tensor.importance->fingerprint : "";
  const Encoder encoder = encodes ? used_encoder(tensor) : reference_encoder();
  const std::shared_ptr<const Covariance> covariance = encoder.is_covariance() ? tensor.covariance : nullptr;
  const std::string key = covariance ? covariance->key() : "";
  wanted_.push_back({place, bytes, tensor.name, values, tensor.type, big_endian, encoder, weights, key});
  for (Encoding& encoding : step.encodings)
    if (encoding.type == tensor.type && encoding.big_endian == big_endian && encoding.encoder == encoder &&
        fingerprint_of(encoding) == weights && key_of_covariance(encoding) == key)
      return encoding.places.push_back(place);
  step.encodings.push_back(
      {tensor.type, weights.empty() ? nullptr : tensor.importance, {place}, big_endian, {}, encoder, covariance});
}

std::vector<Step> StepMaker::take() {
  std::erase_if(steps_, [](const Step& step) { return step.encodings.empty(); });
  std::unordered_map<SourceRef, std::size_t> order;
  const auto place_of = [&](const Step& step) -> std::pair<std::size_t, std::uint64_t> {
    const Extent* extent = first_extent(*step.expression);
    if (!extent) return {0, 0};
    return {1 + order.emplace(extent->source, order.size()).first->second, extent->offset};
  };
  for (const Step& step : steps_) place_of(step);  // numbers the sources in the order of first use
  std::ranges::stable_sort(steps_, {}, place_of);
  return std::move(steps_);
}

std::size_t StepMaker::step_of(const std::string& name, const ExpressionRef& values) {
  const auto [known, is_new] = by_node_.emplace(values, steps_.size());
  if (!is_new) return known->second;
  const auto [equal, is_unequal] = by_key_.emplace(key_of(*values), steps_.size());
  known->second = equal->second;
  if (is_unequal) steps_.push_back({name, values, {}, nullptr, nullptr});
  return known->second;
}

Status prove_steps(std::span<const Step> steps, std::span<const WantedPlace> wanted) {
  std::map<Place, const WantedPlace*> left;
  for (const WantedPlace& each : wanted)
    if (!left.emplace(each.place, &each).second) return wrong_step(each.tensor, "has two tensors at its place");
  for (const Step& step : steps)
    for (const Encoding& encoding : step.encodings)
      for (const Place& place : encoding.places) {
        const auto found = left.find(place);
        if (found == left.end()) return wrong_step(step.name, "writes it to a place that is not its own");
        const WantedPlace& its = *found->second;
        if (!has_same_values(*step.expression, *its.values))
          return wrong_step(its.tensor, fmt::format("would write the values of {} to it", quoted_name(step.name)));
        if (encoding.type != its.type || encoding.big_endian != its.big_endian)
          return wrong_step(its.tensor,
                            fmt::format("would write it as {}, not as {}", encoding.type->name, its.type->name));
        if (encoding.encoder != its.encoder || fingerprint_of(encoding) != its.importance ||
            key_of_covariance(encoding) != its.covariance)
          return wrong_step(its.tensor, "would encode it with another encoder, importance, or covariance");
        const Result<std::uint64_t> bytes = bytes_of(*encoding.type, step.expression->shape);
        if (!bytes || bytes.value() != its.bytes)
          return wrong_step(its.tensor, fmt::format("reserves {} bytes for it, which is not its size", its.bytes));
        left.erase(found);
      }
  if (!left.empty()) return wrong_step(left.begin()->second->tensor, "does not write it");
  return ok();
}

}  // namespace ggufmill
