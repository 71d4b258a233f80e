#pragma once
// The encoder of values in a quantized type. The type decides the format and the size; the encoder decides which of
// the format's numbers are written.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/core/types.h"

namespace ggufmill {

// Weights of the squared errors that a search minimizes.
enum class SearchWeights : std::uint8_t {
  kGgml,        // those of the reference encoder of the type
  kQuarter,     // importance times the fourth root of 2 s + x x, where s is the mean square of the block
  kImportance,  // the importance, or 1 without it
  kPlain,       // 1
};
inline constexpr std::string_view kSearchWeightWords[] = {"ggml", "quarter", "importance", "plain"};

// Recognition of rows that already are values of the type, because the weights were quantized before.
enum class Lattice : std::uint8_t {
  kOff,
  kAuto,  // encoded without further loss where the type has a lattice kernel
};
inline constexpr std::string_view kLatticeWords[] = {"off", "auto"};

struct Encoder {
  static constexpr std::uint32_t kMinEffort = 1, kMaxEffort = 3, kMaxSweeps = 100;

  const EncoderMethod* method = &reference_method();  // never null
  // The effort of a search, including the one that `covariance` starts from: kMinEffort to kMaxEffort. 0 if there is
  // none: `covariance` then starts from the default encoder, see encoder_for().
  std::uint32_t effort = 0;
  std::optional<SearchWeights> weights{};  // of a search; none: depends on the importance, see encoder_for()
  Lattice lattice = Lattice::kOff;
  // Parameters of `covariance`, else 0: the factor of all correlations, or kChosenShrink (core/covariance.h); the
  // amount added to the variances, as a multiple of their mean; and the number of times that each level is
  // reconsidered.
  double shrink = 0, damp = 0;
  std::uint32_t sweeps = 0;

  // Encoded by the type's default encoder.
  bool is_default() const { return method == &reference_method(); }
  bool is_search() const { return method == &search_method(); }
  // A search, or the default encoder, followed by a choice of levels with the covariance of the inputs.
  bool is_covariance() const { return method == &covariance_method(); }
  bool searches() const { return is_search() || (is_covariance() && effort != 0); }
  // True if nothing else than the default encoder contributes to the bytes.
  bool is_reference() const { return is_default() && lattice == Lattice::kOff; }
  bool operator==(const Encoder&) const = default;
};

using EncodersByType = std::map<const TypeInfo*, Encoder>;

// Returns the encoders that their names stand for: the default, a search of the greatest effort with lattice, and such
// a search followed by a choice of levels.
Encoder reference_encoder();
Encoder search_encoder();
Encoder covariance_encoder();
// Returns the search that an encoder `covariance` starts from, or leaves to tensors without a covariance.
Encoder start_of(const Encoder& covariance);

// Returns true if the type has such an encoder.
bool has_method(const EncoderMethod& method, const TypeInfo& type);
// For messages: returns "search", or "encoder 'mine'"; and the names of the types that have the encoder, separated by
// commas.
std::string noun_of(const EncoderMethod& method);
std::string types_with(const EncoderMethod& method);
// Returns help for the name of an encoder that is unknown here: the module and package that have it, or a similar name.
std::string unknown_encoder_help(std::string_view name, const Types& types);

// Return true for types that have a search, types whose levels can be chosen with a covariance, and types whose lattice
// is recognised.
bool has_search(const TypeInfo& type);
bool has_covariance(const TypeInfo& type);
bool has_lattice(const TypeInfo& type);
// Returns the names of the types whose lattice is recognised, separated by commas, for messages.
std::string types_with_lattice();

// Returns the encoder that a tensor of a type gets if `wanted` was asked for: that encoder, with its weights decided
// (quarter with importance, plain without it), as far as the type has it. A type without that method gets the
// reference; but of `covariance`, the search remains for a type that does not have it, and for a tensor without a
// covariance. Types with a code book start from the default encoder, whose scales were measured to be better for them.
Encoder encoder_for(const Encoder& wanted, const TypeInfo& type, bool importance, bool covariance = false);

// Returns "reference", "reference with lattice", "search (effort 3, quarter weights, lattice)", "mine".
std::string describe(const Encoder& encoder);

}  // namespace ggufmill
