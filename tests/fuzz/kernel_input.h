#pragma once
// What the bytes of a fuzzer's input mean to a kernel.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"
#include "tests/conformance/kernel_run.h"

namespace ggufmill {

struct KernelInput {
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  conformance::Placement placement;
  std::vector<std::byte> source;
  std::vector<float> importance;  // empty: none
  bool finite = true;             // the weights
};

// How many kinds of weights the last byte of the head chooses from; its top bit chooses importance.
inline constexpr unsigned kWeightKinds = 5;

// `head`: the three bytes after the kernel's.
KernelInput kernel_input(const ggufmill_kernel& kernel, std::span<const std::byte, 3> head,
                         std::span<const std::byte> data);

}  // namespace ggufmill
