#pragma once
// Random inputs for kernels: the gentle ones of real weights, and those that sit on ties, thresholds and the ends of
// the range of floats. All values are finite.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ggufmill::conformance {

// Deterministic and the same on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Uniform in [0, limit), limit at least 1.
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  // In (-1, 1), roughly bell-shaped.
  float bell();

 private:
  std::uint64_t state_;
};

enum class InputKind : std::uint8_t {
  kWeights,     // bell-shaped, one magnitude
  kMixed,       // the magnitude changes from run to run of 32, zeros among them
  kTies,        // small integers and halves times a power of two: every rounding a tie
  kOneSided,    // all of one sign
  kConstant,    // one value in a run of 16
  kAlmostZero,  // around the thresholds below which a group counts as zero
  kSubnormal,   // subnormal and the smallest normal floats
  kHuge,        // near the greatest float: sums and differences overflow
  kAnyFinite,   // every finite bit pattern alike
  kSparse,      // mostly zeros of both signs
};
inline constexpr int kInputKinds = 10;

std::string name_of(InputKind kind);
std::vector<float> hard_input(InputKind kind, Random& random, std::size_t count);

// Not negative; some columns zero.
std::vector<float> hard_importance(Random& random, std::size_t count);
std::vector<std::byte> random_bytes(Random& random, std::size_t count);

}  // namespace ggufmill::conformance
