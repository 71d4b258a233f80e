#pragma once
// A model as the header plane sees it: metadata, and descriptions of tensors. No weight is ever held here.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"
#include "pipeline/core/types.h"

namespace ggufmill {

// Up to four dimensions; the first is the row length (columns), as in GGUF. Missing ones count as 1.
struct Shape {
  std::uint32_t rank = 0;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};

  std::uint64_t columns() const { return dims[0]; }
  std::uint64_t elements() const { return dims[0] * rows(); }  // checked against overflow when read
  std::uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  bool operator==(const Shape&) const = default;
};
std::string describe(const Shape& shape);  // "4096 x 128"

// Where the values of a tensor lie: `bytes` bytes at `offset` of Model::files[file], as `type`.
struct TensorSource {
  const TypeInfo* type = nullptr;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool big_endian = false;  // elements and scales are in the other byte order and are swapped when read
};

// Importance weights of one tensor, read when its slabs are converted. Thread-safe.
class Importance {
 public:
  virtual ~Importance() = default;
  // `shape.columns()` weights of matrix `matrix` (0 <= matrix < dims[2] * dims[3]), finite and not negative.
  virtual Result<std::vector<float>> weights(std::uint64_t matrix) const = 0;
  // Identifies the weights' content, for plan hashes.
  virtual std::string fingerprint() const = 0;
};

struct Tensor {
  std::string name;
  Shape shape;
  const TypeInfo* type = nullptr;  // what it will be; what it is: source.type
  TensorSource source;
  std::string reason;                            // which rule decided `type`, for `plan`
  // Set where rows are no whole blocks of the type that a recipe wanted, and `type` took its place.
  const TypeInfo* fallback_from = nullptr;
  std::shared_ptr<const Importance> importance;  // null: none; used where the target type accepts it
  // Why importance data of the tensor's name cannot be used; null: nothing is wrong. A problem of the model once the
  // tensor is converted, of no matter where it is kept.
  std::shared_ptr<const Error> importance_fault;

  bool converted() const { return type != source.type; }
};

struct SourceFile {
  std::string path;
  std::uint64_t bytes = 0;
};

struct Model {
  std::vector<SourceFile> files;
  Metadata metadata;
  std::vector<Tensor> tensors;
  std::vector<std::string> warnings;  // for the user, one line each: "tensor name of 70 bytes ..."
  std::vector<Error> problems;        // what `plan` shows beside its table and `run` refuses: importance that lacks
  std::uint64_t pruned_layers = 0;    // left out so far: recipes place tensors among the layers that there were
  bool importance_given = false;      // an importance matrix was given, whether or not it covers every tensor
  std::string recipe;                 // what quantized it, for `{recipe}` in output paths; empty: nothing
};

}  // namespace ggufmill
