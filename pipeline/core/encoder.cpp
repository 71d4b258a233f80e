#include "pipeline/core/encoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/core/covariance.h"
#include "pipeline/core/text.h"
#include "pipeline/core/type_family.h"
#include "pipeline/core/wings.h"

namespace ggufmill {
namespace {

std::string names_of(bool (*has)(const TypeInfo&)) {
  std::string names;
  for (const TypeInfo& type : built_in_types())
    if (has(type)) names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
  return names;
}

}  // namespace

Encoder reference_encoder() { return {}; }

Encoder search_encoder() { return {&search_method(), Encoder::kMaxEffort, {}, Lattice::kAuto}; }

// The damping with which the loss of models was least on text that had not been used to collect the covariance.
Encoder covariance_encoder() {
  return {&covariance_method(), Encoder::kMaxEffort, {}, Lattice::kAuto, kChosenShrink, 0.01, 2};
}

Encoder start_of(const Encoder& covariance) {
  return {&search_method(), covariance.effort, covariance.weights, covariance.lattice};
}

bool has_method(const EncoderMethod& method, const TypeInfo& type) {
  if (&method == &reference_method()) return true;
  if (&method == &search_method()) return has_search(type);
  if (&method == &covariance_method()) return has_covariance(type);
  return std::ranges::count(method.types, &plain_type(type)) != 0;
}

bool has_search(const TypeInfo& type) { return plain_type(type).facts.search; }

bool has_covariance(const TypeInfo& type) { return plain_type(type).facts.covariance; }

bool has_lattice(const TypeInfo& type) { return plain_type(type).facts.lattice; }

std::string noun_of(const EncoderMethod& method) {
  return &method == &search_method() ? method.name : fmt::format("encoder '{}'", method.name);
}

std::string types_with(const EncoderMethod& method) {
  if (&method == &search_method()) return names_of(has_search);
  if (&method == &covariance_method()) return names_of(has_covariance);
  std::string names;
  for (const TypeInfo* type : method.types) names += fmt::format("{}{}", names.empty() ? "" : ", ", type->name);
  return names;
}

std::string unknown_encoder_help(std::string_view name, const Types& types) {
  for (const TypeFamily& family : type_families())
    if (!name.empty() && name == family.encoder) return encoder_help(family);
  if (std::string help = omitted_wing_help(name); !help.empty()) return help;
  std::vector<std::string> names;
  for (const EncoderMethod* method : types.encoders()) names.push_back(method->name);
  const std::string meant = did_you_mean(name, names);
  return (meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant)) +
         fmt::format("encoders here: {}; kernel modules can add others", fmt::join(names, ", "));
}

std::string types_with_lattice() { return names_of(has_lattice); }

Encoder encoder_for(const Encoder& wanted, const TypeInfo& type, bool importance, bool covariance) {
  Encoder encoder = wanted.is_covariance() && !(covariance && has_covariance(type)) ? start_of(wanted) : wanted;
  if (!has_method(*encoder.method, type)) return reference_encoder();
  if (encoder.is_covariance() && plain_type(type).facts.has_book) {
    encoder.effort = 0;
    encoder.weights.reset();
  }
  if (encoder.searches() && !encoder.weights)
    encoder.weights = importance ? SearchWeights::kQuarter : SearchWeights::kPlain;
  if (!has_lattice(type)) encoder.lattice = Lattice::kOff;
  return encoder;
}

std::string describe(const Encoder& encoder) {
  std::string options;
  const auto add = [&](const std::string& option) { options += (options.empty() ? "" : ", ") + option; };
  if (encoder.searches()) add(fmt::format("effort {}", encoder.effort));
  if (encoder.weights) add(fmt::format("{} weights", kSearchWeightWords[static_cast<std::size_t>(*encoder.weights)]));
  if (encoder.lattice == Lattice::kAuto) add("lattice");
  if (encoder.is_covariance()) {
    add(chooses_shrink(encoder) ? "chosen shrinkage" : fmt::format("shrink {}", encoder.shrink));
    add(fmt::format("damp {}", encoder.damp));
    add(counted(encoder.sweeps, "sweep"));
  }
  const std::string& name = encoder.method->name;
  if (options.empty()) return name;
  return encoder.is_default() ? fmt::format("{} with {}", name, options) : fmt::format("{} ({})", name, options);
}

}  // namespace ggufmill
