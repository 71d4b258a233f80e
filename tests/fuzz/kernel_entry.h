#pragma once
// What is fuzzed of the kernels, by the fuzzer and by the regression test alike: any bytes in, all modules agree.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"

namespace ggufmill {

// An input is four bytes and data. They choose: the reference's kernel; rows and the guard page that memory lies
// against; blocks a row; how the data becomes weights and whether there is importance. The data is repeated, a byte
// further on each time, until it is enough.
inline constexpr std::size_t kKernelFuzzHead = 4;

class KernelFuzz {
 public:
  // The modules in the program's own module directory that this machine can run. Throws std::runtime_error when there
  // is none beside the reference.
  KernelFuzz();

  // "simd x86-64-v3, simd x86-64-v4"; what this machine cannot run, with the reason, in `refused`.
  std::string modules() const;
  std::string refused() const;

  // Runs one kernel of every module between guard pages and compares it with the linked-in reference's: decoders on
  // any bytes, encoders on finite weights and importance. Encoders also get infinities and NaNs, of which the ABI
  // promises nothing: they must stay within their memory, and the bytes are not compared. Returns what differs; else
  // nothing. Input shorter than its head is nothing.
  std::string run(std::span<const std::byte> input) const;

  // For every kernel of the reference inputs of all kinds, with data that depends on `seed` alone.
  std::vector<std::vector<std::byte>> seeds(std::uint64_t seed) const;

 private:
  std::shared_ptr<const Kernels> kernels_;
  std::vector<const ggufmill_module*> modules_;
};

}  // namespace ggufmill
