#pragma once
// The stage `importance`: assigns an importance matrix to the tensors.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/config/registry.h"
#include "stages/importance/computed_importance.h"
#include "stages/importance/coverage.h"

namespace ggufmill {

// A file of several, and the factor for its sums and counts.
struct ImportancePart {
  std::string path;
  double weight = 1;
  Origin origin{};
};

struct ImportanceOptions {
  std::string file;        // one of these four is given
  std::string covariance;  // a covariance file, which also has the importance
  Origin file_origin{}, covariance_origin{};
  std::vector<ImportancePart> files;  // added up in this order
  std::optional<ImportanceComputation> compute;
  Selection selection;
  CoveragePolicy policy;
  bool record = true;  // append the keys quantize.imatrix.* to the metadata
};

// Creates the stage. Tensors keep their importance in later stages, even if these rename or renumber them. All numbers
// in use are read once, in pieces, when the stage is applied; see coverage.h for the checks. `open` reads the header of
// a GGUF file.
Result<std::unique_ptr<Stage>> make_importance_stage(ImportanceOptions options, ModelOpener open);
// Returns the specification of
//   importance: {file: imatrix.gguf, files: [..], covariance: .., compute: {..}, include: [..], exclude: [..], missing:
//   error | none | mean |
//     neighbours, least_counts: N, any_model: true | false, record: true | false}
StageSpec importance_stage(ModelOpener open);

}  // namespace ggufmill
