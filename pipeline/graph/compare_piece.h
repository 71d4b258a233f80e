#pragma once
// Some rows of two tensors, read and compared. Internal to graph/.

#include <memory>
#include <span>
#include <vector>

#include "pipeline/graph/compare.h"
#include "pipeline/io/io.h"
#include "pipeline/report/target_measure.h"

namespace ggufmill {

using InputFiles = std::vector<std::shared_ptr<const InputFile>>;

// One of the two tensors of a pair.
struct ComparedSide {
  const Tensor* tensor = nullptr;
  const InputFiles* files = nullptr;
  KernelChoice decode;  // null kernel: F32, or a type that cannot be decoded
  std::uint64_t row_bytes = 0;
};

struct ComparedWork {
  ComparedSide a, b;
  bool decodable = false;  // else only bytes are compared
  std::uint64_t columns = 0, rows = 0;
  TargetMeasure* measure = nullptr;
  std::atomic<bool>* differs = nullptr;  // set where bytes do, or types

  // Bytes of memory for a piece of `rows` rows.
  std::uint64_t cost(std::uint64_t rows) const;
};

struct ComparedPiece {
  const ComparedWork* work = nullptr;
  std::uint64_t first_row = 0, rows = 0;  // within one matrix
};

// `memory`: work->cost(rows) bytes, the thread's own.
Status compare_piece(const ComparedPiece& piece, std::span<std::byte> memory);

}  // namespace ggufmill
