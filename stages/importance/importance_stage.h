#pragma once
// The stage `importance`: assigns an importance matrix to the tensors.

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "stages/importance/coverage.h"

namespace ggufmill {

struct ImportanceOptions {
  std::string file;
  Selection selection;
  CoveragePolicy policy;
  bool record = true;  // append the keys quantize.imatrix.* to the metadata
};

// Creates the stage. Tensors keep their importance in later stages, even if these rename or renumber them. All numbers
// in use are read once, in pieces, when the stage is applied; see coverage.h for the checks. `open` reads the header of
// a GGUF file.
Result<std::unique_ptr<Stage>> make_importance_stage(ImportanceOptions options, ModelOpener open);
// Returns the specification of
//   importance: {file: imatrix.gguf, include: [..], exclude: [..], missing: error | unweighted, record: true | false}
StageSpec importance_stage(ModelOpener open);

}  // namespace ggufmill
