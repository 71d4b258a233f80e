#pragma once
// Fuzzes kernels, in the fuzzer and in the regression test: for arbitrary bytes, all modules must agree.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"

namespace ggufmill {

// An input has four bytes and data. The bytes select the kernel of the reference; the rows and the guard page next to
// the memory; the blocks per row; and the conversion of the data to weights, with or without importance. The data is
// repeated, shifted by one byte each time, until there is enough.
inline constexpr std::size_t kKernelFuzzHead = 4;

class KernelFuzz {
 public:
  // Loads the modules in the program's module directory that this machine can run. Throws std::runtime_error if there
  // is none besides the reference.
  KernelFuzz();

  // Returns names such as "simd x86-64-v3, simd x86-64-v4". `refused` returns the modules that this machine cannot run,
  // with the reasons.
  std::string modules() const;
  std::string refused() const;

  // Runs one kernel of every module between guard pages and compares it with the linked-in reference's: decoders on
  // arbitrary bytes, encoders on finite weights and importance. Encoders also get infinities and NaNs, for which the
  // ABI guarantees nothing: they must not access memory out of bounds, and the bytes are not compared. Returns the
  // differences, or an empty string. Input shorter than the head is ignored.
  std::string run(std::span<const std::byte> input) const;

  // Returns inputs of all kinds for every kernel of the reference, with data that depends only on `seed`.
  std::vector<std::vector<std::byte>> seeds(std::uint64_t seed) const;

 private:
  std::shared_ptr<const Kernels> kernels_;
  std::vector<Kernels::ModuleKernels> modules_;
};

}  // namespace ggufmill
