#pragma once
// Families of diffusion models: the tensors that identify them, and what their GGUF files need. Each is a file in
// configs/diffusion. Source of the names and rules: tools/convert.py of ComfyUI-GGUF (Apache-2.0).

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/core/error.h"

namespace ggufmill::diffusion {

struct Family {
  std::string name{};         // general.architecture
  std::string description{};  // "FLUX 1 and 2, and Chroma"
  // Each set of tensor names identifies the family in the layout of the original files, or in that of Diffusers.
  std::vector<std::vector<std::string>> found_by{}, diffusers{};
  std::vector<std::string> f32{};   // parts of the names of tensors that are stored as F32
  std::vector<std::string> drop{};  // parts of the names of tensors that are not written
  bool rows_of_256 = false;         // tensors whose rows are not multiples of 256 become rows of 256
};

using TensorNames = std::set<std::string, std::less<>>;

struct BuiltInFamily {
  std::string_view name, text;
};
std::span<const BuiltInFamily> built_in_families();

// Returns the field table of a family's file.
FieldSpec family_fields();
// Returns a built-in family by name, or reads a file; errors refer to `asked`.
Result<Family> named_family(const std::string& name_or_path, const Origin& asked);
// Returns the built-in family with the largest set of identifying tensors that all exist. Fails with exit code 4,
// without a place, if there is none, if several families have one of that size, and for the layout of Diffusers.
Result<Family> find_family(const TensorNames& tensors);
// Returns true if all tensors of one of the family's sets exist.
bool identifies(const Family& family, const TensorNames& tensors);

}  // namespace ggufmill::diffusion
