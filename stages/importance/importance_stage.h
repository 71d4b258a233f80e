#pragma once
// The stage `importance`: brings an importance matrix to the tensors.

#include "pipeline/core/stage.h"

namespace ggufmill {

// `importance: {file: imatrix.gguf, include: [..], exclude: [..], missing: error | unweighted, record: true | false}`.
// Tensors keep what they are given through later stages, whatever these rename or renumber. Every number that counts is
// read once, piece by piece, when the stage is applied; coverage.h says what is checked. With `record`, the keys
// quantize.imatrix.* come to the end of the metadata. `open` reads the header of a GGUF.
StageSpec importance_stage(ModelOpener open);

}  // namespace ggufmill
