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
  virtual Result<std::vector<OutputFile>> layout(const Model& model) const = 0;
};

// Opens another model than the source: how a stage reads a format that another one knows.
using ModelOpener = std::function<Result<Model>(const std::string& path)>;

}  // namespace ggufmill
