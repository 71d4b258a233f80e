#include "pipeline/core/encoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Types with a search. A test compares the list with the kernels.
constexpr std::string_view kSearched[] = {"Q4_0",    "Q4_1",   "Q5_0",    "Q5_1",   "Q8_0",   "Q2_K",  "Q3_K",
                                          "Q4_K",    "Q5_K",   "Q6_K",    "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ2_S",
                                          "IQ3_XXS", "IQ2_XS", "IQ2_XXS", "IQ1_S",  "IQ1_M",  "MXFP4", "NVFP4"};

// Types whose lattice is recognised. A test compares the list with the kernels.
constexpr std::string_view kRecognised[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "IQ4_NL"};

std::string names_of(bool (*has)(const TypeInfo&)) {
  std::string names;
  for (const TypeInfo& type : built_in_types())
    if (has(type)) names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
  return names;
}

}  // namespace

Encoder reference_encoder() { return {}; }

Encoder search_encoder() { return {&search_method(), Encoder::kMostEffort, {}, Lattice::kAuto}; }

bool has_method(const EncoderMethod& method, const TypeInfo& of) {
  const TypeInfo& type = plain_type(of);
  if (&method == &reference_method()) return true;
  if (&method == &search_method()) return has_search(type);
  return std::ranges::count(method.types, &type) != 0;
}

bool has_search(const TypeInfo& of) {
  const TypeInfo& type = plain_type(of);
  if (type.type_class == TypeClass::kForeign) return type.has_own_search;
  return std::ranges::count(kSearched, type.name) != 0;
}

bool has_lattice(const TypeInfo& type) { return std::ranges::count(kRecognised, plain_type(type).name) != 0; }

std::string noun_of(const EncoderMethod& method) {
  return &method == &search_method() ? method.name : fmt::format("encoder '{}'", method.name);
}

std::string types_with(const EncoderMethod& method) {
  if (&method == &search_method()) return names_of(has_search);
  std::string names;
  for (const TypeInfo* type : method.types) names += fmt::format("{}{}", names.empty() ? "" : ", ", type->name);
  return names;
}

std::string unknown_encoder_help(std::string_view name, const Types& types) {
  if (name == kIkEncoder)
    return "the kernel module ik (package ggufmill-ik) adds this encoder, which quantizes types of llama.cpp as "
           "ik_llama.cpp does; `ggufmill kernels` lists the modules that are loaded";
  std::vector<std::string> names;
  for (const EncoderMethod* method : types.encoders()) names.push_back(method->name);
  const std::string meant = did_you_mean(name, names);
  return (meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant)) +
         fmt::format("encoders here: {}; kernel modules can add others", fmt::join(names, ", "));
}

std::string types_with_lattice() { return names_of(has_lattice); }

Encoder encoder_for(const Encoder& wanted, const TypeInfo& type, bool importance) {
  if (!has_method(*wanted.method, type)) return reference_encoder();
  Encoder encoder = wanted;
  if (wanted.is_search() && !encoder.weights)
    encoder.weights = importance ? SearchWeights::kQuarter : SearchWeights::kPlain;
  if (!has_lattice(type)) encoder.lattice = Lattice::kOff;
  return encoder;
}

std::string describe(const Encoder& encoder) {
  std::string options;
  const auto add = [&](const std::string& option) { options += (options.empty() ? "" : ", ") + option; };
  if (encoder.is_search()) add(fmt::format("effort {}", encoder.effort));
  if (encoder.weights) add(fmt::format("{} weights", kSearchWeightWords[static_cast<std::size_t>(*encoder.weights)]));
  if (encoder.lattice == Lattice::kAuto) add("lattice");
  const std::string& name = encoder.method->name;
  if (options.empty()) return name;
  return encoder.is_default() ? fmt::format("{} with {}", name, options) : fmt::format("{} ({})", name, options);
}

}  // namespace ggufmill
