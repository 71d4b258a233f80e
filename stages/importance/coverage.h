#pragma once
// Assigns importance data to the tensors of a model.

#include "pipeline/core/model.h"
#include "stages/importance/importance_file.h"

namespace ggufmill {

enum class Missing {
  kUnweighted,  // a tensor without data is quantized without importance
  kError,       // a tensor without data is a problem
};

struct CoveragePolicy {
  Missing missing = Missing::kUnweighted;
  bool any_model = false;  // warn instead of adding a problem if no entry fits any tensor
};

// Assigns the entry with the same name to each tensor of the model. Reads each entry once to check its numbers; invalid
// numbers are an error. Adds problems to the model (Model::problems, exit code 4) for:
// - an entry with a size other than the tensor's columns times its matrices (dims[0] * dims[2]; matrices along dims[3]
//   share entries) if the tensor is converted. Otherwise sets Tensor::importance_fault, for the stage that will decide
//   its type. Token embeddings get a warning and no importance, as in the reference;
// - a file in which no entry fits any tensor, and which therefore belongs to another model, unless `any_model`;
// - with Missing::kError, tensors without an entry that have two or more dimensions, are named *weight and are kept by
//   `selection`. Token embeddings need no entry, because calibration looks their rows up instead of multiplying by
//   them.
// All entries without a tensor together get one warning.
Status attach_importance(const ImportanceFile& file, const Selection& selection, CoveragePolicy policy, Model& model);

}  // namespace ggufmill
