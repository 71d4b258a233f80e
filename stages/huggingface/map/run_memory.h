#pragma once
// The memory that a model needs beside its weights while llama.cpp runs it: the cache of keys and values, and the
// states of recurrent layers. The formulas are data: `memory` in the architecture maps, see
// configs/architectures/memory.yaml. Source of the facts: llama-kv-cache*.cpp, llama-memory-recurrent.cpp,
// llama-hparams.cpp and llama-model.cpp of llama.cpp (MIT).

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/metadata.h"
#include "stages/huggingface/map/added_maps.h"

namespace ggufmill::huggingface {

struct RunSettings {
  std::uint64_t context = 0;  // tokens; at least 1
  std::uint64_t batch = 512;  // tokens that are computed together
  bool flash_attention = true;
  std::uint64_t vocabulary = 0;  // number of tokens
};

// The part of a cache that belongs to a layer, in elements: `keys` and `values` are the row lengths of a cell.
struct CacheOfLayer {
  std::uint64_t cells = 0, keys = 0, values = 0;
};

struct KeyValueCache {
  std::string name;                  // "attention", "indexer"
  std::vector<CacheOfLayer> layers;  // one for each layer
};

struct RunMemory {
  std::uint64_t layers = 0;       // number of layers, with those that predict further tokens
  std::uint64_t used_layers = 0;  // without these; they come last
  std::vector<KeyValueCache> caches;
  std::vector<std::uint64_t> states;     // of each layer, in bytes
  std::uint64_t compute = 0;             // bytes of buffers for computations: an estimate
  bool copies_embedding = false;         // an output that is the embedding is a second copy of it
  std::vector<std::string> cache_types;  // names of the types that a cache can have
  bool is_known = false;  // a map describes the architecture; otherwise every layer is an attention layer
};

// Returns the memory of a model with this metadata. Reads maps only. Thread-safe. Exit code 4, without a place, if the
// metadata is missing a key or has a wrong value; exit code 2 for an error in an added map.
Result<RunMemory> run_memory(const Metadata& metadata, const RunSettings& settings, const AddedMaps& added);

}  // namespace ggufmill::huggingface
