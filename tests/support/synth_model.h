#pragma once
// Creates synthetic model and importance files for tests, the demo and benchmarks. The code shares nothing with the
// product, so that a bug in one is detected by the other. All functions throw std::exception on an invalid spec or a
// failed write, and are safe to call from several threads for different paths.

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/synth.h"

namespace ggufmill::synth {

enum class WeightType : std::uint8_t { kF32, kF16, kBf16 };

struct MetadataSpec {
  std::string key;
  std::string kind;  // "uint32", "string", "array:float32", ..., or "tokens": an array of that many generated words
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
  std::uint64_t alignment = 32;  // of the data; must match the metadata
  std::vector<MetadataSpec> metadata;
  std::vector<TensorSpec> tensors;
};

// {"alignment": 32, "metadata": [[key, kind, value], ...],
//  "tensors": [{"name":, "type": "BF16", "dims": [...], "dist":, "seed":}, ...]}
ModelSpec parse_spec(const boost::json::value& value);
ModelSpec load_spec(const std::string& path);

// Returns a Llama-shaped model of about `weights` weights, with the metadata that llama.cpp requires.
ModelSpec llama_spec(std::uint64_t weights, WeightType type = WeightType::kBf16);

// Writes a GGUF file of version 3. If `sparse` is set, writes the header, then a hole of the right size. Memory use
// does not grow with the tensors.
void write_model(const ModelSpec& spec, const std::string& path, bool sparse = false);

// Writes importance data for every tensor named *.weight with at least two dimensions; entry k uses the seed `seed` +
// k. The file is a GGUF, or in the legacy format if `path` ends with ".dat".
void write_imatrix(const ModelSpec& spec, std::uint64_t seed, const std::string& path);

}  // namespace ggufmill::synth
