#pragma once
// Tells whether a model fits into the memory of devices when llama.cpp runs it: its weights, its cache of keys and
// values, the states of recurrent layers, and the buffers of computations; and how many layers each device holds.
//
// Weights, cache and states are exact; computations and speed are estimates. The assignment of layers follows
// llama_model_base::load_tensors() of llama.cpp, which gives the first layers to the CPU and the output to the last
// device.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"
#include "pipeline/plan/plan.h"
#include "stages/huggingface/map/run_memory.h"

namespace ggufmill {

// A tensor as it is stored in the file that is run.
struct FitTensor {
  std::string name;
  Shape shape;
  const TypeInfo* type = nullptr;
  std::uint64_t bytes = 0;
};

struct FitSettings {
  huggingface::RunSettings run;
  const TypeInfo* cache_type = nullptr;  // of keys and values
  std::vector<std::uint64_t> devices;    // their memory in bytes, in order; empty: everything is in one memory
  std::uint64_t margin = 0;              // bytes of each device that remain free
  std::optional<double> bandwidth;       // bytes per second that are read from memory
};

// Bytes of each kind.
struct MemoryUse {
  std::uint64_t weights = 0, cache = 0, states = 0, compute = 0;
  std::uint64_t total() const;  // at most 2^64 - 1
};

struct DeviceUse : MemoryUse {
  std::uint64_t size = 0;    // memory of the device; 0: that of the machine, which is not limited
  std::uint64_t layers = 0;  // number of layers on it
  bool has_output = false;   // the output layer is on it
};

struct Fitted {
  MemoryUse all;                     // with every layer in one memory
  std::uint64_t layers = 0;          // that are used, without the output layer
  std::uint64_t unused = 0;          // layers after them that are not loaded, which llama.cpp counts as well
  bool is_known = true;              // a map describes the architecture; otherwise cache and states are estimates
  std::uint64_t offloaded = 0;       // used layers on devices, and the output layer
  bool fits = true;                  // all layers are on devices, or there are none
  std::vector<DeviceUse> devices;    // those asked for, in order, then the machine; empty without devices
  std::uint64_t read_per_token = 0;  // bytes of weights, cache and states that a token reads if the context is full
  // Upper bound: the bandwidth by these bytes. None for a model without cache and states, which computes many tokens
  // at once.
  std::optional<double> tokens_per_second;

  // The value of llama.cpp's -ngl: layers from the end that lie on devices.
  std::uint64_t offloaded_of_all() const { return offloaded == 0 ? 0 : offloaded + unused; }
};

// A model, or what a plan makes of it.
struct FitModel {
  std::string name;
  std::vector<FitTensor> tensors{};
  Metadata metadata{};
};
// Returns what llama.cpp would load of an output; nullopt if the output is no GGUF file, or not the text part.
std::optional<FitModel> model_to_fit(const PlannedOutput& output);

// Returns the number of tokens that the metadata names as the context of the model.
std::optional<std::uint64_t> trained_context(const Metadata& metadata);

// Computes what a model needs. `tensors` and `metadata` are those of one file or shard set. Exit code 2 if its cache
// cannot have the type; exit code 4, without a place, if the metadata does not describe a model that generates text or
// embeddings. Reads maps only. Thread-safe.
Result<Fitted> fit_of(const std::vector<FitTensor>& tensors, const Metadata& metadata, const FitSettings& settings,
                      const huggingface::AddedMaps& added);

}  // namespace ggufmill
