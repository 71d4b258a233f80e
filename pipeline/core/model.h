#pragma once
// A model as the header plane sees it: metadata, and descriptions of tensors. No weight is ever held here.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/metadata.h"
#include "pipeline/core/notes.h"
#include "pipeline/core/types.h"

namespace ggufmill {

struct Tensor {
  std::string name;
  ExpressionRef expression;        // where its values come from, and so its shape; never null
  const TypeInfo* type = nullptr;  // what it will be; what it is: expression->type
  std::string reason;              // which rule decided `type`, for `plan`
  // Set where rows are no whole blocks of the type that a recipe wanted, and `type` took its place.
  const TypeInfo* fallback_from = nullptr;
  std::shared_ptr<const Importance> importance;  // null: none; used where the target type accepts it
  // Why importance data of the tensor's name cannot be used; null: nothing is wrong. A problem of the model once the
  // tensor is converted, of no matter where it is kept.
  std::shared_ptr<const Error> importance_fault;

  const Shape& shape() const { return expression->shape; }
  const TypeInfo& source_type() const { return *expression->type; }
  std::uint64_t source_bytes() const { return expression->bytes(); }
  bool converted() const { return type != expression->type; }
};

struct Model {
  std::vector<SourceRef> files;  // that it came from, in their order
  Metadata metadata;
  std::vector<Tensor> tensors;
  std::vector<std::string> warnings;  // for the user, one line each: "tensor name of 70 bytes ..."
  std::vector<Error> problems;        // what `plan` shows beside its table and `run` refuses: importance that lacks
  Notes notes;                        // of the stages, for those that come after them

  std::vector<std::string> paths() const {  // of its files
    std::vector<std::string> paths;
    for (const SourceRef& file : files) paths.push_back(file->path);
    return paths;
  }
};

// Numbers of layers are below, as counts of them are written as uint32.
inline constexpr std::uint64_t kMostLayers = std::uint64_t{1} << 31;
// N of a tensor `blk.N.*`; none for other names.
std::optional<std::uint64_t> layer_of(std::string_view tensor_name);

}  // namespace ggufmill
