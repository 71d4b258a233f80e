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

// Correction of the scales after a row is encoded. Levels of least squared error shrink the values of a row; the gain
// stretches them again.
enum class Gain : std::uint8_t {
  kNone,
  kRow,  // one factor for each row
};
inline constexpr std::string_view kGainWords[] = {"none", "row"};

// Recognition of rows that already are values of the type, because the weights were quantized before.
enum class Lattice : std::uint8_t {
  kOff,
  kAuto,  // encoded without further loss where the type has a lattice kernel
};
inline constexpr std::string_view kLatticeWords[] = {"off", "auto"};

struct Encoder {
  static constexpr std::uint32_t kLeastEffort = 1, kMostEffort = 3;

  const EncoderMethod* method = &reference_method();  // never null
  Gain gain = Gain::kNone;
  std::uint32_t effort = 0;                // of a search: kLeastEffort to kMostEffort; else 0
  std::optional<SearchWeights> weights{};  // of a search; none: depends on the importance, see encoder_for()
  Lattice lattice = Lattice::kOff;

  // Encoded by the type's default encoder and corrected afterwards, or not at all.
  bool is_default() const { return method == &reference_method(); }
  bool is_search() const { return method == &search_method(); }
  // True if nothing else than the default encoder contributes to the bytes.
  bool is_reference() const { return is_default() && gain == Gain::kNone && lattice == Lattice::kOff; }
  bool operator==(const Encoder&) const = default;
};

using EncodersByType = std::map<const TypeInfo*, Encoder>;

// Returns the encoders that their names stand for: the default, and a search of effort 2 with gain and
// lattice.
Encoder reference_encoder();
Encoder search_encoder();

// Returns true if the type has such an encoder.
bool has_method(const EncoderMethod& method, const TypeInfo& type);
// For messages: returns "search", or "encoder 'ik'"; and the names of the types that have the encoder, separated by
// commas.
std::string noun_of(const EncoderMethod& method);
std::string types_with(const EncoderMethod& method);
// Returns help for the name of an encoder that is unknown here: the module and package that have it, or a similar name.
std::string unknown_encoder_help(std::string_view name, const Types& types);

// Return true for types that have a search, types whose scales a gain can stretch with use, and types whose lattice is
// recognised.
bool has_search(const TypeInfo& type);
bool has_gain(const TypeInfo& type);
bool has_lattice(const TypeInfo& type);
// Return the names of these types, separated by commas, for messages.
std::string types_with_gain();
std::string types_with_lattice();

// Returns the encoder that a tensor of a type gets if `wanted` was asked for: that encoder, with its weights decided
// (quarter with importance, plain without it), as far as the type has it. A type without that method gets the
// reference.
Encoder encoder_for(const Encoder& wanted, const TypeInfo& type, bool importance);

// Returns "reference", "reference with row gain", "search (effort 2, quarter weights, row gain, lattice)", "ik".
std::string describe(const Encoder& encoder);

}  // namespace ggufmill
