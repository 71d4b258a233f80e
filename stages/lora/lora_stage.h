#pragma once
// The stage `lora`: merges an adapter into the weights.

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/adapter.h"

namespace ggufmill {

struct LoraOptions {
  std::string adapter;  // folder of a PEFT adapter, or a GGUF file
  std::string base{};   // for a folder; empty: the source's, if it is a checkpoint
  double scale = 1;
  bool ignore_unmatched = false;
  Origin origin{};
};

// Creates the stage. For each pair of matrices A and B in the adapter, it adds scale * alpha / rank * B A to the tensor
// of that name. The values of all adapters of a tensor are added in double
// precision and rounded once, to F32, before they are converted to the tensor's type. Norms in an adapter replace the
// model's. Applying the stage fails with exit code 4 for an adapter of another architecture, for tensors whose shapes
// differ, and for pairs without a tensor, unless these are ignored. `open` reads the headers of an adapter.
std::unique_ptr<Stage> make_lora_stage(LoraOptions options, AdapterOpener open);
// Returns the specification of `lora: {adapter: PATH, base: FOLDER, scale: 1.0, unmatched: error | ignore}`.
StageSpec lora_stage(AdapterOpener open);

}  // namespace ggufmill
