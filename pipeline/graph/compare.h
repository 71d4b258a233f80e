#pragma once
// Compares the values of tensors that lie in files, piece by piece.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/report/difference.h"

namespace ggufmill {

// Two tensors of the same shape; `a` may have importance weights. Both outlive the comparison.
struct TensorPair {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
};

struct ComparedPair {
  bool same_bytes = false;         // and the same type
  std::optional<ErrorSums> error;  // none where a type cannot be decoded, and of tensors without values
};

struct CompareOptions {
  std::uint64_t memory = 512ull << 20;  // bytes of buffers; the importance weights of one row per thread come on top
  unsigned threads = 0;                 // 0: as many as the machine gives this process
  const std::atomic<bool>* stop = nullptr;
  // Bytes read of both files, and how many there are: from one thread at a time, at the end and not more often than
  // every 50 ms.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

struct CompareResult {
  std::vector<ComparedPair> pairs;
  std::uint64_t bytes_read = 0;
  std::uint64_t peak_memory = 0;
  unsigned threads = 0;
  double seconds = 0;
};

// Whether pairs of this type can have an error: there is a kernel that decodes it, or it is F32.
bool is_decodable(const TypeInfo& type, const Kernels& kernels);

// The figures of a pair do not depend on the options. Every thread reads, decodes and sums pieces of its own, in the
// order of `pairs`; reads block, so that a slow disk keeps threads waiting. Exit code 2 for a budget that a row does
// not fit into, 130 when stopped; of several errors that of the earliest piece.
Result<CompareResult> compare_tensors(const std::vector<TensorPair>& pairs, const Model& a, const Model& b,
                                      const Kernels& kernels, const CompareOptions& options);

}  // namespace ggufmill
