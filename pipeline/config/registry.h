#pragma once
// Sources, stages and sinks that a pipeline file can name, each with its field table and the function that reads its
// options.

#include <functional>
#include <memory>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// `make` receives a value that has passed the lint of `field`. Its errors include the place in the file.
struct SourceSpec {
  FieldSpec field;  // its name is the key under `source:`
  std::function<Result<std::unique_ptr<Source>>(const ConfigNode& value)> make;
};

struct StageSpec {
  FieldSpec field;          // its name is the key of an item of `stages:`, or of an output (`quantize:`)
  bool per_output = false;  // allowed in an output, next to the sink's key
  std::function<Result<std::unique_ptr<Stage>>(const ConfigNode& value)> make;
};

struct SinkSpec {
  FieldSpec field;  // its name is the key of an output
  std::function<Result<std::unique_ptr<Sink>>(const ConfigNode& value)> make;
};

struct Registry {
  Types types;  // types that its parts and its files can name
  std::vector<SourceSpec> sources;
  std::vector<StageSpec> stages;
  std::vector<SinkSpec> sinks;
};

}  // namespace ggufmill
