#pragma once
// A model as seen by the header plane: metadata and tensor descriptions. It never contains weights.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/encoder.h"
#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"
#include "pipeline/core/metadata.h"
#include "pipeline/core/notes.h"
#include "pipeline/core/types.h"

namespace ggufmill {

struct Covariance;
struct Importance;

struct Tensor {
  std::string name;
  ExpressionRef expression;        // origin of its values, and thereby its shape; never null
  const TypeInfo* type = nullptr;  // target type; the source type is expression->type
  std::string reason;              // rule that decided `type`, for `plan`
  // The type that a recipe requested, if the rows are not a multiple of its block and `type` replaces it; otherwise
  // null.
  const TypeInfo* fallback_from = nullptr;
  std::shared_ptr<const Importance> importance;  // null if there is none; used if the target type accepts it
  // The reason why importance data under the tensor's name cannot be used; null if there is no such problem. It becomes
  // a problem of the model once the tensor is converted, and does not matter if the tensor is kept.
  std::shared_ptr<const Error> importance_fault;
  bool importance_is_missing = false;  // the importance that the user gave should have data for it, but has none
  // The covariance of its inputs, for the encoder `covariance`; null if there is none.
  std::shared_ptr<const Covariance> covariance{};
  Encoder encoder{};  // asked for; what the type has of it is used: see encoder_for()

  const Shape& shape() const { return expression->shape; }
  const TypeInfo& source_type() const { return *expression->type; }
  std::uint64_t source_bytes() const { return expression->bytes(); }
  bool converted() const { return type != expression->type; }
};

struct Model {
  std::vector<SourceRef> files;  // files from which the model was read, in order
  Metadata metadata;
  std::vector<Tensor> tensors;
  std::vector<std::string> warnings;  // for the user, one line each: "tensor name of 70 bytes ..."
  std::vector<Error> problems;        // shown by `plan` next to its table and rejected by `run`: for example, missing
                                      // importance data or measurements
  Notes notes;                        // from stages to later stages

  std::vector<std::string> paths() const {  // paths of the files
    std::vector<std::string> paths;
    for (const SourceRef& file : files) paths.push_back(file->path);
    return paths;
  }
};

// Returns the bytes of a tensor as `type`, and of the padding after it to a multiple of `alignment` bytes (0: none).
std::uint64_t padded_bytes(const Tensor& tensor, const TypeInfo& type, std::uint64_t alignment);
// Returns the sum over all tensors in their target types.
std::uint64_t padded_bytes(const Model& model, std::uint64_t alignment);

// Limit of layer numbers (exclusive), as layer counts are written as uint32.
inline constexpr std::uint64_t kMaxLayers = std::uint64_t{1} << 31;
// Returns N for a tensor named `blk.N.*`; nullopt for other names.
std::optional<std::uint64_t> layer_of(std::string_view tensor_name);

}  // namespace ggufmill
