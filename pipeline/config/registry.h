#pragma once
// What a pipeline file can name: sources, stages and sinks, each with its field table, and how their options are read.

#include <functional>
#include <memory>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// `make` gets a value that has passed the lint of `field`; its errors have the place in the file.
struct SourceSpec {
  FieldSpec field;  // its name is the key under `source:`
  std::function<Result<std::unique_ptr<Source>>(const ConfigNode& value)> make;
};

struct StageSpec {
  FieldSpec field;          // its name is the key of an item of `stages:`, or of an output (`quantize:`)
  bool per_output = false;  // may stand in an output, beside the sink's key
  std::function<Result<std::unique_ptr<Stage>>(const ConfigNode& value)> make;
};

struct SinkSpec {
  FieldSpec field;  // its name is the key of an output
  std::function<Result<std::unique_ptr<Sink>>(const ConfigNode& value)> make;
};

struct Registry {
  Types types;  // that its parts and its files can name
  std::vector<SourceSpec> sources;
  std::vector<StageSpec> stages;
  std::vector<SinkSpec> sinks;
};

}  // namespace ggufmill
