#pragma once
// Assigns the covariances of a file to the tensors of a model.

#include "pipeline/core/model.h"
#include "stages/importance/covariance_file.h"

namespace ggufmill {

// Assigns the covariance of its input to each tensor that has importance of its own from the same file, see
// attach_importance(). Experts whose importance is substituted, or whose sums are all 0, have none, and neither have
// tensors without any expert that has one. Reads the sums. Adds a problem (exit code 4) to the model for a tensor whose
// columns or experts are not those of its input.
Status attach_covariance(const CovarianceFile& file, Model& model);

}  // namespace ggufmill
