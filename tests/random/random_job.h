#pragma once
// Random jobs: one source, one to six outputs with stages of their own, and the way in which they run; and random
// stages, with what they have to do.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/graph/engine.h"
#include "tests/random/random_source.h"

namespace ggufmill::testing {

// The required contents of an output's tensors, as far as they are known without ggufmill.
struct Expected {
  std::vector<ModelTensor> tensors;  // by the names that they have in the output
  // Other types have the bytes that converting the rows in memory gives: no importance, the default encoder.
  bool encodes_plainly = true;
};

struct RandomStage {
  std::string text;                       // as in a pipeline file: "prune: {layers: '0'}"
  std::function<void(Expected&)> change;  // what the stage has to do with the tensors
};

enum class SinkKind { kGguf, kSafetensors, kNpy };

struct RandomOutput {
  std::string name;  // of the file without extension, or of the folder: "o0"
  SinkKind kind = SinkKind::kGguf;
  std::string sink;                 // "gguf: {path: DIR/o0.gguf}"
  std::string more;                 // further settings: ", part: draft"; or empty
  bool has_known_values = true;     // false: `more` or the sink changes names or values
  std::vector<RandomStage> stages;  // of this output alone
};

struct RunSettings {
  EngineKind engine = EngineKind::kSimple;
  IoKind io = IoKind::kAuto;
  std::uint64_t shuffle_seed = 0;  // see EngineOptions
  std::uint64_t slab_bytes = 0;
  std::string limits;  // the value of `limits:`; empty: none
  std::string report;  // the value of `report:`; empty: none
};

struct RandomJob {
  std::string source;                // the value of `source:`
  std::vector<ModelTensor> tensors;  // of the source, whose values are known
  std::vector<RandomStage> stages;   // of all outputs
  std::vector<RandomOutput> outputs;
  RunSettings settings;

  // Returns the pipeline file with some of the outputs.
  std::string text(std::span<const RandomOutput> outputs, const RunSettings& settings) const;
  Expected expected(const RandomOutput& output) const;
};

// Returns a job whose outputs are written to `folder`.
RandomJob random_job(Random& random, const RandomSource& source, const std::string& folder);

// Each returns one stage; `layers` is the number of layers that a model has before the stage.
RandomStage random_prune(Random& random, unsigned& layers);
RandomStage rename_stage(const std::string& from, const std::string& to);
RandomStage random_metadata(Random& random);
RandomStage random_lora(Random& random, const RandomSource& source);
RandomStage importance_stage(const RandomSource& source);
RandomStage random_quantize(Random& random);
RandomStage random_float_type(Random& random);  // `quantize` with a type that is not quantized
// `quantize` with a target, which only outputs can have.
RandomStage random_target(Random& random);

}  // namespace ggufmill::testing
