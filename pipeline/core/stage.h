#pragma once
// What a job is made of: sources, stages and sinks. Folders under stages/ offer them, each with an options struct and a
// function that makes one of it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

// All three are of the header plane, over metadata and tensor descriptions: immutable once made, thread-safe, pure
// functions of their options and of what they are given. They read headers at most, never weights.

class Source {
 public:
  virtual ~Source() = default;
  virtual Result<Model> open() const = 0;
};

class Stage {
 public:
  virtual ~Stage() = default;
  virtual Result<Model> apply(Model model) const = 0;
  // Paths of the files that it reads, or was made of: never written.
  virtual std::vector<std::string> inputs() const { return {}; }
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
  bool big_endian = false;  // words of tensors are swapped before they are written
};

// Lays a model out as files.
class Sink {
 public:
  virtual ~Sink() = default;
  // The model as the format can hold it: types that it lacks become others. What layout() is given.
  virtual Result<Model> adapt(Model model) const { return model; }
  virtual Result<std::vector<OutputFile>> layout(const Model& model) const = 0;
  // As Stage::inputs().
  virtual std::vector<std::string> inputs() const { return {}; }
};

// What sinks have in common. Both fail with exit code 2.
Status check_unique_names(const Model& model);
// An output's path with the name of the recipe in place of every {recipe}: an error where there is no name, or
// one that cannot be part of a path.
Result<std::string> path_with_recipe(std::string path, const std::string& recipe);

// Opens another model than the source: how a stage reads a format that another one knows.
using ModelOpener = std::function<Result<Model>(const std::string& path)>;

}  // namespace ggufmill
