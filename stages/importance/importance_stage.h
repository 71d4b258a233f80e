#pragma once
// The stage `importance`: brings an importance matrix to the tensors.

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "stages/importance/coverage.h"

namespace ggufmill {

struct ImportanceOptions {
  std::string file;
  Selection selection;
  CoveragePolicy policy;
  bool record = true;  // the keys quantize.imatrix.* come to the end of the metadata
};

// Tensors keep what they are given through later stages, whatever these rename or renumber. Every number that counts is
// read once, piece by piece, when the stage is applied; coverage.h says what is checked. `open` reads the header of a
// GGUF.
std::unique_ptr<Stage> make_importance_stage(ImportanceOptions options, ModelOpener open);
// `importance: {file: imatrix.gguf, include: [..], exclude: [..], missing: error | unweighted, record: true | false}`.
StageSpec importance_stage(ModelOpener open);

}  // namespace ggufmill
