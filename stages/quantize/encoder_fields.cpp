#include "stages/quantize/encoder_fields.h"

#include <fmt/format.h>

#include "pipeline/core/covariance.h"

namespace ggufmill {
namespace {

struct ReferenceSettings {
  Lattice lattice = reference_encoder().lattice;
};

struct SearchSettings {
  std::uint32_t effort = search_encoder().effort;
  std::optional<SearchWeights> weights{};
  Lattice lattice = search_encoder().lattice;
};

struct CovarianceSettings {
  std::optional<double> shrink{};
  double damp = covariance_encoder().damp;
  std::uint32_t sweeps = covariance_encoder().sweeps;
  std::uint32_t effort = covariance_encoder().effort;
  std::optional<SearchWeights> weights{};
  Lattice lattice = covariance_encoder().lattice;
};

// Exactly one of them is present.
struct EncoderSettings {
  std::optional<ReferenceSettings> reference{};
  std::optional<SearchSettings> search{};
  std::optional<CovarianceSettings> covariance{};
};

constexpr const char* kNoGain =
    "remove it: multiplying the scales of each row harmed models in which a few inputs have most of the importance";
constexpr const char* kNoCompensation =
    "remove it: the estimate by which errors were made to cancel did not predict the loss of models; effort 3 is the "
    "widest search";

std::string lattice_doc() {
  return "Weights that were quantized before: `auto` recognises rows whose values the type can hold exactly, and "
         "encodes them without further loss. Rows that were rounded to BF16 since then are encoded in the same way if "
         "that makes the error smaller. With report.error, the report and the manifest mark tensors without any error "
         "as `exact`. Types: " +
         types_with_lattice() + ".";
}

Form<EncoderSettings> settings_form() {
  const auto reference = map_of<ReferenceSettings>({field("lattice", &ReferenceSettings::lattice,
                                                          enumeration<Lattice>(kLatticeWords), lattice_doc())
                                                        .example("auto")})
                             .former_key("gain", kNoGain);
  const auto search =
      map_of<SearchSettings>(
          {
              field("effort", &SearchSettings::effort,
                    "How much is tried: each step takes two to five times as long and finds smaller errors.")
                  .at_least(Encoder::kMinEffort)
                  .at_most(Encoder::kMaxEffort),
              field("weights", &SearchSettings::weights, enumeration<SearchWeights>(kSearchWeightWords),
                    "Weights of the squared errors: those of llama-quantize; importance times the fourth root of the "
                    "square; importance; or none. The default is `quarter` with importance, and `plain` without."),
              field("lattice", &SearchSettings::lattice, enumeration<Lattice>(kLatticeWords), lattice_doc()),
          })
          .former_key("gain", kNoGain)
          .former_key("compensate", kNoCompensation);
  const auto covariance = map_of<CovarianceSettings>({
      field("shrink", &CovarianceSettings::shrink,
            fmt::format("Factor for the correlations of columns, from 0 to 1. Those of few tokens are noisy; without "
                        "shrinkage, levels would be fitted to the noise. Default: chosen for each matrix with the "
                        "held-out vectors of the covariance file, where rows for which the covariance is no better "
                        "on these are encoded by the search alone; {} if the file has no such vectors.",
                        kUsualShrink))
          .at_least(0)
          .at_most(1)
          .example("0.7"),
      field("damp", &CovarianceSettings::damp,
            "What is added to the variance of every column, in means of the variances."),
      field("sweeps", &CovarianceSettings::sweeps,
            "How often every level is reconsidered, given all others, after the pass that chooses them.")
          .at_most(Encoder::kMaxSweeps),
      field("effort", &CovarianceSettings::effort, "Effort of the search that decides scales and minimums before.")
          .at_least(Encoder::kMinEffort)
          .at_most(Encoder::kMaxEffort),
      field("weights", &CovarianceSettings::weights, enumeration<SearchWeights>(kSearchWeightWords),
            "Weights of the squared errors in that search, as for `search`."),
      field("lattice", &CovarianceSettings::lattice, enumeration<Lattice>(kLatticeWords), lattice_doc()),
  });
  const std::string group = "method";
  return map_of<EncoderSettings>(
             {
                 field("reference", &EncoderSettings::reference, reference,
                       "The bytes of llama-quantize, apart from the lattice.")
                     .group(group),
                 field("search", &EncoderSettings::search, search, "A wider search for scales, minimums and levels.")
                     .group(group),
                 field(
                     "covariance", &EncoderSettings::covariance, covariance,
                     "The search, then levels chosen so that the errors of a row's products are small, with the "
                     "covariance of the inputs. It needs `importance: {covariance: ..}`. Tensors without a covariance, "
                     "and other types, are encoded by the search alone. Types: " +
                         types_with(covariance_method()) + ".")
                     .group(group),
             })
      .doc("An encoder with its options.");
}

Encoder encoder_of(const EncoderSettings& settings) {
  Encoder encoder;
  if (settings.reference) {
    encoder.lattice = settings.reference->lattice;
  } else if (settings.search) {
    encoder.method = &search_method();
    encoder.effort = settings.search->effort;
    encoder.weights = settings.search->weights;
    encoder.lattice = settings.search->lattice;
  } else if (settings.covariance) {
    encoder = {&covariance_method(),
               settings.covariance->effort,
               settings.covariance->weights,
               settings.covariance->lattice,
               settings.covariance->shrink.value_or(kChosenShrink),
               settings.covariance->damp,
               settings.covariance->sweeps};
  }
  return encoder;
}

// The name of an encoder, with the options that the name stands for.
Form<Encoder> name_form(const Types& types) {
  const Form<const EncoderMethod*> method = encoder_name(types);
  Form<Encoder> form;
  form.spec = method.spec;
  form.read_with([method](const ConfigNode& node) -> Result<Encoder> {
    BOOST_OUTCOME_TRY(const EncoderMethod* found, method.read(node));
    if (found == &search_method()) return search_encoder();
    if (found == &covariance_method()) return covariance_encoder();
    Encoder encoder;
    encoder.method = found;
    return encoder;
  });
  form.write_with([](const Encoder& encoder) { return encoder.is_reference() ? encoder.method->name : std::string(); });
  return form;
}

}  // namespace

Form<Encoder> encoder_form(const Types& types) {
  return either<Encoder>(name_form(types), converted<Encoder>(settings_form(), encoder_of));
}

Form<EncodersByType> encoders_form(const Types& types) {
  const auto convert = [types](const NamedValues<Encoder>& named, const ConfigNode& node) -> Result<EncodersByType> {
    EncodersByType encoders;
    Diagnostics errors;
    for (std::size_t i = 0; i < named.size(); ++i) {
      const auto type = type_of_key(types, node, i);
      const Status checked =
          type ? check_encoder(named[i].second, *type.value(), origin_of(node.entries[i].value)) : Status(type.error());
      if (checked)
        encoders[type.value()] = named[i].second;
      else
        errors.add(checked.error());
    }
    if (!errors.empty()) return errors.together();
    return encoders;
  };
  return converted<EncodersByType>(dictionary_of(encoder_form(types).doc("An encoder.")), convert);
}

Result<const TypeInfo*> type_of_key(const Types& types, const ConfigNode& node, std::size_t i) {
  const ConfigNode::Entry& entry = node.entries[i];
  if (const TypeInfo* type = types.find(entry.key)) return type;
  const Error error = unknown_type(entry.key, types);
  return error_at(node.text, entry.position, error.what, error.help);
}

Status check_encoder(const Encoder& encoder, const TypeInfo& type, const Origin& origin) {
  if (const EncoderMethod& method = *encoder.method; !has_method(method, type))
    return error_at(origin, fmt::format("there is no {} for {}", noun_of(method), type.name),
                    fmt::format("use `encoder: reference` for it; types with {}: {}",
                                encoder.is_search() ? "a search" : "this encoder", types_with(method)));
  if (encoder.is_default() && encoder.lattice != Lattice::kOff && !has_lattice(type))
    return error_at(origin, fmt::format("there is no lattice for {}", type.name),
                    "use `encoder: reference` for it; types with a lattice: " + types_with_lattice());
  return ok();
}

}  // namespace ggufmill
