#pragma once
// The speed of kernels, one thread, on data that stays in the second-level cache.

#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"
#include "tests/bench/timing.h"

namespace ggufmill::bench {

struct KernelTime {
  std::string type;
  std::string operation;  // "decode", "encode", "encode, importance"
  std::string module;
  std::string isa;
  double weights_per_second = 0;
  double bytes_per_second = 0;  // read and written together
  double of_memcpy = 0;         // bytes_per_second over that of memcpy() on as many bytes
  double of_reference = 0;      // ratio to the linked-in reference's speed; 0 where that has no such kernel
};

// Every kernel of every loaded module for `types` (all when empty), in order of type, then operation, then module.
std::vector<KernelTime> time_kernels(const Kernels& kernels, const std::vector<std::string>& types,
                                     const Effort& effort);

}  // namespace ggufmill::bench
