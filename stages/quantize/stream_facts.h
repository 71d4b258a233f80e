#pragma once
// Derives the facts about a model that an objective uses besides its measurement: the scales of its parts, the use of
// each expert, and the quality of the importance of its tensors.

#include "pipeline/core/model.h"
#include "stages/quantize/objective.h"

namespace ggufmill {

// Returns the facts of a model for an objective, which is one of kStream, from its metadata and the values of its
// norms, which are read. Fails like read_small_values().
Result<StreamFacts> stream_facts(const Objective& objective, const Model& model);

// Returns the tensors besides those in `open` that a measurement must contain, because the objective computes with
// their energy: the embedding and matrices that write to the residual stream, whose types are decided. Empty for a
// model without importance, to which such an objective does not apply.
std::vector<std::size_t> tensors_with_energy(const Objective& objective, const Model& model,
                                             const std::vector<std::size_t>& open);

// Returns the measurement with the sums of each expert multiplied by the tokens it saw, relative to the mean of its
// tensor, so that errors count as often as they occur. An expert counts at least `least_use` of the mean. Tensors whose
// tokens or matrices are not known stay as they are. Without matrices of experts.
Measurement weighted_by_use(const Measurement& measurement, const Model& model, double least_use);

// Returns true if the objective asks for caution and the tensor, which is in a layer, has no importance, or one that
// rests on few tokens. Embeddings are looked up, and importance files usually omit the head.
bool is_little_known(const Objective& objective, const Tensor& tensor);

}  // namespace ggufmill
