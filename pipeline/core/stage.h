#pragma once
// What a pipeline file can name: sources, stages and sinks, each with its field table. Folders under stages/ offer one
// each; the command line puts them into a Registry.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/core/config_node.h"
#include "pipeline/core/fields.h"
#include "pipeline/core/model.h"

namespace ggufmill {

// A step of the header plane: Model -> Model over metadata and tensor descriptions. Immutable after making; apply()
// reads headers at most, never weights, and is a pure function of the model and the stage's configuration.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual Result<Model> apply(Model model) const = 0;
  // Paths of the files that it reads, or was made of: never written.
  virtual std::vector<std::string> inputs() const { return {}; }
};

// Opens a model: reads headers only.
struct SourceSpec {
  FieldSpec field;  // its name is the key under `source:`
  std::function<Result<Model>(const ConfigNode& value)> open;
};

// Opens another model than the source, headers only: how a stage reads a format that another one knows.
using ModelOpener = std::function<Result<Model>(const std::string& path)>;

struct StageSpec {
  FieldSpec field;          // its name is the key of an item of `stages:`, or of an output (`quantize:`)
  bool per_output = false;  // may stand in an output, beside the sink's key
  std::function<Result<std::unique_ptr<Stage>>(const ConfigNode& value)> make;
};

// Bytes of tensor `tensor` (index into the model) at `offset` of the output file.
struct Placement {
  std::size_t tensor = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// One file to be written: `header` at byte 0, tensors at their places, zeros between, `bytes` in all.
struct OutputFile {
  std::string path;
  std::string header;
  std::vector<Placement> tensors;  // in order of offset
  std::uint64_t bytes = 0;
};

// Lays a model out as files. Pure.
struct SinkSpec {
  FieldSpec field;  // its name is the key of an output
  std::function<Result<std::vector<OutputFile>>(const Model& model, const ConfigNode& value)> layout;
};

struct Registry {
  std::vector<SourceSpec> sources;
  std::vector<StageSpec> stages;
  std::vector<SinkSpec> sinks;
};

}  // namespace ggufmill
