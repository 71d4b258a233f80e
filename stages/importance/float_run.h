#pragma once
// Float32 numbers in a file, read piece by piece.

#include <cstdint>
#include <memory>
#include <span>

#include "pipeline/core/expression.h"
#include "pipeline/io/input_file.h"

namespace ggufmill {

// `count` numbers from byte `offset` on; whoever makes one has checked that they lie in the file. Thread-safe.
struct FloatRun {
  std::shared_ptr<const InputFile> file;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  bool big_endian = false;

  // Blocking; reads the numbers from number `first` on. The caller keeps within `count`.
  Status read(std::uint64_t first, std::span<float> into) const;
  Extent extent() const { return {file->describe(), offset, count * sizeof(float), big_endian}; }
};

}  // namespace ggufmill
