#pragma once
// Synthetic model and importance files for tests, the demo and benchmarks: written by code that shares nothing with the
// product, so that a mistake in one shows against the other. Everything here throws std::exception on a wrong spec or
// a failed write, and is safe to call from several threads for different paths.

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/synth.h"

namespace ggufmill::synth {

enum class WeightType : std::uint8_t { kF32, kF16, kBf16 };

struct MetadataSpec {
  std::string key;
  std::string kind;  // "uint32", "string", "array:float32", ..., or "tokens": an array of that many made-up words
  boost::json::value value;
};

struct TensorSpec {
  std::string name;
  WeightType type = WeightType::kF32;
  std::vector<std::uint64_t> dims;  // innermost first, as in GGUF
  Distribution distribution = Distribution::kNormal;
  std::uint64_t seed = 0;
  std::uint64_t elements() const;
  std::uint64_t bytes() const;
};

struct ModelSpec {
  std::uint64_t alignment = 32;  // of the data; the metadata must say the same
  std::vector<MetadataSpec> metadata;
  std::vector<TensorSpec> tensors;
};

// {"alignment": 32, "metadata": [[key, kind, value], ...],
//  "tensors": [{"name":, "type": "BF16", "dims": [...], "dist":, "seed":}, ...]}
ModelSpec parse_spec(const boost::json::value& value);
ModelSpec load_spec(const std::string& path);

// A Llama-shaped model of about `weights` weights, with the metadata that llama.cpp asks of one.
ModelSpec llama_spec(std::uint64_t weights, WeightType type = WeightType::kBf16);

// Writes a GGUF of version 3; `sparse`: the header, then a hole of the right size. Memory does not grow with the
// tensors.
void write_model(const ModelSpec& spec, const std::string& path, bool sparse = false);

// Writes importance data for every tensor named *.weight of two dimensions or more, entry k from `seed` + k:
// a GGUF, or the legacy format when `path` ends with ".dat".
void write_imatrix(const ModelSpec& spec, std::uint64_t seed, const std::string& path);

}  // namespace ggufmill::synth
