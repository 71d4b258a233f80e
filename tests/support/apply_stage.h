#pragma once
// Applies stages as a pipeline file would.

#include <string_view>

#include "pipeline/config/registry.h"

namespace ggufmill {

// Parses `yaml` as a file named "a.yaml" and validates it against `field`. Returns the document, or the first error.
Result<ConfigDocument> linted(std::string_view yaml, const FieldSpec& field);

// Parses `yaml` as the value of the stage's key (in a file named "a.yaml"), validates it, creates the stage and applies
// it to `model`. Returns the first error of these steps.
Result<Model> apply_stage(const StageSpec& spec, std::string_view yaml, Model model);

// Returns an F32 tensor that is not stored in any file.
Tensor bare_tensor(std::string name, const std::vector<std::uint64_t>& dims = {32, 2});
// Gives the tensor another shape and source type; it is still not stored in any file.
void set_source(Tensor& tensor, const Shape& shape, const char* type);

}  // namespace ggufmill
