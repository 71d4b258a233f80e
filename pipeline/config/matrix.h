#pragma once
// `matrix:`, which makes a batch of a pipeline file: many sources, each with all outputs. And the words {name} and
// {recipe} in outputs.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/config/registry.h"

namespace ggufmill {

FieldSpec matrix_field(const Registry& registry);

// A pipeline file of one source, without `matrix`. The nodes keep their places in the file that they came from.
struct ExpandedJob {
  std::string source;  // the path of what it reads
  ConfigNode root;
};

// One for each source of `matrix`, in the order of the file and, of what a pattern matches, of the names' bytes; of a
// file without `matrix` just that one. A source of which all outputs are excluded is none. Outputs with {recipe} stand
// once for each of `matrix.recipes`, and {recipe} is replaced in them; other outputs' sinks do that. {name} is replaced
// in all values of stages, outputs and report. Looks at the file system for patterns and for what kind a source is;
// opens nothing. Errors (exit code 2, with their places) are added to `errors`.
std::vector<ExpandedJob> expand_matrix(const ConfigNode& root, Diagnostics& errors);

// Adds an error for each path of a job's stages, outputs and report with a placeholder that nothing replaces: {Name}
// for {name}, or {recipe} elsewhere than in the path of a sink. `fields` are those of the job.
void check_placeholders(const ConfigNode& root, const FieldSpec& fields, const Registry& registry, Diagnostics& errors);

// Value of {name}: the last part of a source's path without ".gguf", a shard's number and, behind the last dash, the
// encoding of GGUF's naming convention; for a folder of the hub's cache, the model's name.
// "models/Llama-3-8B-BF16-00001-of-00002.gguf" -> "Llama-3-8B", "models--org--Llama-3-8B/snapshots/COMMIT" ->
// "Llama-3-8B".
std::string source_name(std::string_view path);

}  // namespace ggufmill
