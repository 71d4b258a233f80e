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

// Choice of levels so that the errors of a row cancel, after a search.
enum class Compensation : std::uint8_t {
  kNone,
  kRows,  // as up to kRowsTogether rows of a matrix suggest
};
inline constexpr std::string_view kCompensationWords[] = {"none", "rows"};

// Recognition of rows that already are values of the type, because the weights were quantized before.
enum class Lattice : std::uint8_t {
  kOff,
  kAuto,  // encoded without further loss where the type has a lattice kernel
};
inline constexpr std::string_view kLatticeWords[] = {"off", "auto"};

struct Encoder {
  static constexpr std::uint32_t kLeastEffort = 1, kMostEffort = 3;
  static constexpr std::uint64_t kRowsTogether = 256;  // rows of a matrix that are compensated together

  const EncoderMethod* method = &reference_method();  // never null
  Gain gain = Gain::kNone;
  std::uint32_t effort = 0;                // of a search: kLeastEffort to kMostEffort; else 0
  std::optional<SearchWeights> weights{};  // of a search; none: depends on the importance, see encoder_for()
  Lattice lattice = Lattice::kOff;
  Compensation compensation = Compensation::kNone;  // of a search

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

// Returns what a search of an effort does if nothing else is asked for: the greatest effort compensates.
Compensation usual_compensation(std::uint32_t effort);

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
// Returns true for types whose search can compensate for errors.
bool has_compensation(const TypeInfo& type);
// Return the names of these types, separated by commas, for messages.
std::string types_with_gain();
std::string types_with_lattice();
std::string types_with_compensation();

// Returns the encoder that a tensor of a type gets if `wanted` was asked for: that encoder, with its weights decided
// (quarter with importance, plain without it), as far as the type has it. A type without that method gets the
// reference.
Encoder encoder_for(const Encoder& wanted, const TypeInfo& type, bool importance);

// Returns the encoder whose errors are measured for a choice of types: compensation is left out, because it increases
// the errors of single weights, and rows of a sample have no neighbours.
Encoder as_measured(Encoder encoder);

// Returns "reference", "reference with row gain", "search (effort 3, quarter weights, compensation, row gain,
// lattice)", "ik".
std::string describe(const Encoder& encoder);

}  // namespace ggufmill
