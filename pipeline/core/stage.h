#pragma once
// Building blocks of a job: sources, stages and sinks. The folders under stages/ provide them, each with an options
// struct and a function that creates one from it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

// All three belong to the header plane and work on metadata and tensor descriptions. They are immutable once created,
// thread-safe, and pure functions of their options and arguments. They read headers at most, never weights.

class Source {
 public:
  virtual ~Source() = default;
  virtual Result<Model> open() const = 0;
};

class TargetStage;  // a stage that chooses types for a given size: stages/quantize

class Stage {
 public:
  virtual ~Stage() = default;
  // Returns the stage as one that chooses types for a size; null if it does not.
  virtual const TargetStage* as_target() const { return nullptr; }
  virtual Result<Model> apply(Model model) const = 0;
  // Paths of the files that the stage reads or from which it was created; they are never written.
  virtual std::vector<std::string> inputs() const { return {}; }
};

// Location of a tensor in an output file: `bytes` bytes of tensor `tensor` (an index into the model) at `offset`.
struct Placement {
  std::size_t tensor = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A file to be written: `header` at byte 0, tensors at their offsets, zeros in between, `bytes` bytes in total.
struct OutputFile {
  std::string path;
  std::string header;
  std::vector<Placement> tensors;  // in order of offset
  std::uint64_t bytes = 0;
  bool big_endian = false;  // words of tensors are byte-swapped before writing
};

// Lays a model out as files.
class Sink {
 public:
  virtual ~Sink() = default;
  // Returns the model as the format can store it, with unsupported types replaced. The result is passed to layout().
  virtual Result<Model> adapt(Model model) const { return model; }
  virtual Result<std::vector<OutputFile>> layout(const Model& model) const = 0;
  // See Stage::inputs().
  virtual std::vector<std::string> inputs() const { return {}; }
};

// Helpers shared by sinks. Both fail with exit code 2.
Status check_unique_names(const Model& model);
// Returns an output path with every {recipe} replaced by the recipe's name. Fails if there is no name, or if the name
// cannot be part of a path.
Result<std::string> path_with_recipe(std::string path, const std::string& recipe);

// Opens a model other than the source. Lets a stage read a format that is implemented by another folder.
using ModelOpener = std::function<Result<Model>(const std::string& path)>;

}  // namespace ggufmill
