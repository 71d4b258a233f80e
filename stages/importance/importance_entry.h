#pragma once
// What an importance file holds for one tensor.

#include <cstdint>
#include <span>
#include <string>

#include "stages/importance/float_run.h"

namespace ggufmill {

// Sums of squared activations, one for each column and expert, and what to divide them by. Thread-safe.
struct ImportanceEntry {
  std::string name;  // of the tensor
  FloatRun sums;
  FloatRun counts;         // GGUF: tokens seen, one for each of `counts.count` equal parts of the sums; legacy: none
  std::int32_t calls = 0;  // legacy: what all sums are divided by, where more than 0

  std::uint64_t size() const { return sums.count; }
  // The weights from number `first` on: the very float32 numbers that the reference computes (llama.cpp,
  // tools/quantize/quantize.cpp, load_imatrix). A part that saw no token has weights of 1. Exit code 4 for a weight or
  // count that is not finite and for a negative weight. The caller keeps within size().
  Status weights(std::uint64_t first, std::span<float> into) const;
};

// Reads all weights once, piece by piece, and so checks them; a hash of them.
Result<std::string> fingerprint_weights(const ImportanceEntry& entry);

}  // namespace ggufmill
