#pragma once
// The tensors of a random model, with their bytes, and random numbers.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"

namespace ggufmill::testing {

// Random numbers that are the same on every machine: splitmix64 (Steele, Lea, Flood, 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // Returns a number from 0 to `bound` - 1; `bound` is at least 1.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // Returns a number from `least` to `most`.
  std::uint64_t from(std::uint64_t least, std::uint64_t most) { return least + below(most - least + 1); }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  template <class List>
  const auto& pick_from(const List& values) {
    return values[static_cast<std::size_t>(below(values.size()))];
  }

 private:
  std::uint64_t state_;
};

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
