#pragma once
// Stages as a pipeline file would run them.

#include <string_view>

#include "pipeline/config/registry.h"

namespace ggufmill {

// Reads `yaml` as a file named "a.yaml" and lints it by `field`: the document, or the first error.
Result<ConfigDocument> linted(std::string_view yaml, const FieldSpec& field);

// Reads `yaml` as the value of the stage's key (of a file named "a.yaml"), lints it, makes the stage and applies it to
// `model`. The first error of all that.
Result<Model> apply_stage(const StageSpec& spec, std::string_view yaml, Model model);

// A tensor of F32 without a place in any file.
Tensor bare_tensor(std::string name, const std::vector<std::uint64_t>& dims = {32, 2});
// Makes it one of another shape and type, still without a place.
void set_source(Tensor& tensor, const Shape& shape, const char* type);

}  // namespace ggufmill
