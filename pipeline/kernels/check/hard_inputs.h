#pragma once
// Random inputs for kernels: well-behaved ones that resemble real weights, and ones on ties, on thresholds and at the
// ends of the range of floats. All values are finite.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ggufmill::conformance {

// A deterministic generator (splitmix64) with the same output on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Returns a uniform value in [0, limit); `limit` must be at least 1.
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  // Returns a value in (-1, 1) from a roughly bell-shaped distribution.
  float bell();

 private:
  std::uint64_t state_;
};

enum class InputKind : std::uint8_t {
  kWeights,      // bell-shaped, one magnitude
  kMixed,        // the magnitude changes every 32 elements; includes zeros
  kTies,         // small integers and halves times a power of two: every rounding is a tie
  kOneSided,     // all with the same sign
  kConstant,     // one value per run of 16
  kAlmostZero,   // around the thresholds below which a group is treated as zero
  kSubnormal,    // subnormal and smallest normal floats
  kHuge,         // near the largest float: sums and differences overflow
  kAnyFinite,    // all finite bit patterns, equally likely
  kSparse,       // mostly zeros of both signs
  kOverflowing,  // few values of one sign with zeros: some squares overflow
  kGreatTies,    // two magnitudes near 1e30 with both signs
  kLarge,        // from 1e8 to 1e14: scales overflow halves, but squares do not overflow
  kTernary,      // about -1, 0 and 1, which some encoders recognise in whole rows
};
inline constexpr int kInputKinds = 14;

std::string name_of(InputKind kind);
std::vector<float> hard_input(InputKind kind, Random& random, std::size_t count);

enum class ImportanceKind : std::uint8_t {
  kOrdinary,   // up to 1; some columns are zero
  kAnyPower,   // ordinary, times powers from 1e-30 to 1e30 that one or more columns share
  kSubnormal,  // subnormal floats
  kOneColumn,  // zero except in one column
  kEights,     // ordinary in some runs of eight columns, zero in the others
};
inline constexpr int kImportanceKinds = 5;

std::string name_of(ImportanceKind kind);
// Returns nonnegative values.
std::vector<float> hard_importance(ImportanceKind kind, Random& random, std::size_t count);
std::vector<std::byte> random_bytes(Random& random, std::size_t count);

}  // namespace ggufmill::conformance
