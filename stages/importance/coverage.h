#pragma once
// Importance brought to the tensors of a model.

#include "pipeline/core/model.h"
#include "stages/importance/importance_file.h"

namespace ggufmill {

enum class Missing {
  kUnweighted,  // a tensor without data is quantized without
  kError,       // is a problem
};

struct CoveragePolicy {
  Missing missing = Missing::kUnweighted;
  bool any_model = false;  // entries none of which fits any tensor are a warning, no problem
};

// Gives every tensor of the model the entry of its name. Each entry is read once, so that what is wrong with its
// numbers is known now: an error. Problems of the model (Model::problems, exit code 4):
// - an entry whose size is not the tensor's columns times its matrices (dims[0] * dims[2]; what dims[3] counts shares
//   them), where the tensor is converted; else Tensor::importance_fault says so to the stage that will decide its type.
//   Token embeddings get a warning and no importance, as with the reference;
// - entries none of which fits any tensor: of another model, unless `any_model`;
// - with Missing::kError, tensors of two dimensions or more, named *weight, that `selection` keeps and that have none;
//   token embeddings need none, since calibration looks their rows up instead of multiplying by them.
// Entries that fit no tensor get one warning.
Status attach_importance(const ImportanceFile& file, const Selection& selection, CoveragePolicy policy, Model& model);

}  // namespace ggufmill
