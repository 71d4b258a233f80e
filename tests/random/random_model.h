#pragma once
// The tensors of a random model, with their bytes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"
#include "tests/random/random.h"

namespace ggufmill::testing {

struct ModelTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // row length first
  const TypeInfo* type = nullptr;
  std::shared_ptr<const std::string> bytes{};  // little-endian, rows in order

  std::uint64_t columns() const { return dims.empty() ? 1 : dims.front(); }
  std::uint64_t elements() const;
};

struct RandomModel {
  unsigned layers = 0;
  std::vector<ModelTensor> tensors;  // with the names of llama in GGUF
};

// The types that the file format of a model has.
enum class ModelTypes { kGguf, kFloats };

// Converts rows in memory, in one thread. Throws std::runtime_error.
std::string converted_rows(const Kernels& kernels, const std::string& bytes, const TypeInfo& from, const TypeInfo& to,
                           std::uint64_t columns);

// Returns a tensor with random weights.
ModelTensor random_tensor(Random& random, const Kernels& kernels, std::string name, std::vector<std::uint64_t> dims,
                          const std::string& type);

// Returns a model of one to five layers. Its shapes include vectors with trailing dimensions of 1, columns, experts,
// four dimensions, single numbers, and empty tensors.
RandomModel random_model(Random& random, const Kernels& kernels, ModelTypes types);

}  // namespace ggufmill::testing
