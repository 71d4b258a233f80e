#pragma once
// `matrix:`, which turns a pipeline file into a batch: many sources, each with all outputs. Also the placeholders
// {name} and {recipe} in outputs.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/bound_fields.h"
#include "pipeline/config/registry.h"

namespace ggufmill {

// Outputs that a batch skips: those that match all given patterns.
struct MatrixExclusion {
  std::optional<std::string> name, recipe;  // patterns for {name} and {recipe}
  Origin origin{};
};

// The value of `matrix`, which replaces `source`.
struct Matrix {
  std::vector<ConfigNode> sources{};   // each a path, a pattern for paths, or the value of `source`
  std::vector<std::string> recipes{};  // names or paths
  std::vector<MatrixExclusion> exclude{};
};
Form<Matrix> matrix_form(const Registry& registry);

// A pipeline file with one source and without `matrix`. The nodes keep their positions in the original file.
struct ExpandedJob {
  std::string source;  // path of its input
  ConfigNode root;
};

// Returns one job for each source of `matrix`, in file order; sources that match the same pattern are sorted by the
// bytes of their names. Returns a single job without a matrix. A source is skipped if all its outputs are
// excluded. An output with {recipe} is repeated for each of `matrix.recipes`, with {recipe} replaced; for other
// outputs, the sinks replace it. {name} is replaced in all values of stages, outputs and report. Accesses the file
// system to expand patterns and to determine the kind of a source; opens nothing. Adds errors (exit code 2, with their
// places) to `errors`.
std::vector<ExpandedJob> expand_matrix(const ConfigNode& root, const std::optional<Matrix>& matrix,
                                       Diagnostics& errors);

// Adds an error for each path in a job's stages, outputs and report with a placeholder that nothing replaces: {Name}
// instead of {name}, or {recipe} anywhere other than in the path of a sink. `fields` is the field table of the job.
void check_placeholders(const ConfigNode& root, const FieldSpec& fields, const Registry& registry, Diagnostics& errors);

// Returns the value of {name}: the last component of a source's path without ".gguf", without the shard number, and
// without the encoding that GGUF's naming convention puts after the last dash. For a folder of the hub's cache: the
// model's name. Examples:
//   "models/Llama-3-8B-BF16-00001-of-00002.gguf" -> "Llama-3-8B"
//   "models--org--Llama-3-8B/snapshots/COMMIT" -> "Llama-3-8B"
std::string source_name(std::string_view path);

}  // namespace ggufmill
