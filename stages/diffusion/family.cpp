#include "stages/diffusion/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::diffusion {
namespace {

constexpr std::uint64_t kMaxFamilyBytes = 1 << 20;

using Names = std::vector<std::string>;

Form<Family> family_form() {
  const auto names = [](std::string doc) { return list_of(text().doc(std::move(doc)).example("img_in.weight")); };
  const auto sets = [&] { return list_of(names("Name of a tensor.").at_least(1).doc("Tensors that all exist.")); };
  return map_of<Family>(
             {
                 field("name", &Family::name, "Value of general.architecture.").required(),
                 field("description", &Family::description, "Names of the models."),
                 field("found_by", &Family::found_by, sets().at_least(1),
                       "Sets of tensors; a model with all tensors of one set belongs to the family.")
                     .required(),
                 field("diffusers", &Family::diffusers, sets(),
                       "The same for the layout of Diffusers, which is refused."),
                 field("f32", &Family::f32, names("Part of a tensor's name."),
                       "Tensors that are stored as F32 if they are F32 or BF16."),
                 field("drop", &Family::drop, names("Part of a tensor's name."), "Tensors that are not written."),
                 field("rows_of_256", &Family::rows_of_256,
                       "Whether tensors whose rows are not multiples of 256 become rows of 256; their "
                       "dimensions are stored as comfy.gguf.orig_shape.NAME."),
             })
      .doc("A family of diffusion models.");
}

Result<Family> parse_family(std::string_view text, const std::string& name) {
  return parse_document(text, name, family_form());
}

// Returns the size of the largest set of which all tensors exist; 0 if there is none.
std::size_t largest_match(const std::vector<Names>& sets, const TensorNames& tensors) {
  std::size_t largest = 0;
  for (const Names& set : sets)
    if (std::ranges::all_of(set, [&](const std::string& name) { return tensors.contains(name); }))
      largest = std::max(largest, set.size());
  return largest;
}

Error unknown_family(const TensorNames& tensors, const Names& known) {
  Error error = input_error(
      {},
      tensors.empty() ? "it has no tensors of a diffusion model"
                      : fmt::format("its tensors, such as {}, are not those of a known diffusion model",
                                    quoted_name(*tensors.begin())),
      "a text encoder such as T5 is a checkpoint: `ggufmill convert FOLDER`; for another model, describe it in a file, "
      "`model: ./mine.yaml`, or copy its tensors as they are: `source: {safetensors: {path: ..., architecture: "
      "NAME}}`");
  error.detail = fmt::format("known are {}", fmt::join(known, "; "));
  return error;
}

}  // namespace

FieldSpec family_fields() { return family_form().spec; }

Result<Family> named_family(const std::string& name_or_path, const Origin& asked) {
  Names names;
  for (const BuiltInFamily& built_in : built_in_families()) {
    if (built_in.name == name_or_path) return parse_family(built_in.text, name_or_path);
    names.emplace_back(built_in.name);
  }
  if (!names_file(name_or_path))
    return error_at(asked, fmt::format("unknown family of diffusion models {}", quoted_name(name_or_path)),
                    fmt::format("known are {}; a file name ends in .yaml", fmt::join(names, ", ")));
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(name_or_path, kMaxFamilyBytes));
  return parse_family(text, name_or_path);
}

bool identifies(const Family& family, const TensorNames& tensors) {
  return largest_match(family.found_by, tensors) > 0;
}

Result<Family> find_family(const TensorNames& tensors) {
  std::vector<Family> found;  // those of the largest sets
  std::optional<Family> of_diffusers;
  std::size_t most = 0, most_of_diffusers = 0;
  Names known;
  for (const BuiltInFamily& built_in : built_in_families()) {
    BOOST_OUTCOME_TRY(Family family, parse_family(built_in.text, std::string(built_in.name)));
    known.push_back(family.description);
    if (const std::size_t size = largest_match(family.diffusers, tensors); size > most_of_diffusers) {
      most_of_diffusers = size;
      of_diffusers = family;
    }
    const std::size_t size = largest_match(family.found_by, tensors);
    if (size > most) found.clear();
    if (size > 0 && size >= most) found.push_back(std::move(family));
    most = std::max(most, size);
  }
  if (most_of_diffusers > most)
    return input_error(
        {},
        fmt::format("its tensors have the layout of Diffusers ({}), which ComfyUI-GGUF does not read from a GGUF file",
                    of_diffusers->description),
        "convert the file in the model's original layout, usually a single file beside the folders");
  if (found.size() == 1) return std::move(found.front());
  if (found.empty()) return unknown_family(tensors, known);
  Names names;
  for (const Family& family : found) names.push_back(family.name);
  return input_error({}, fmt::format("its tensors identify several families: {}", fmt::join(names, ", ")),
                     fmt::format("name the right one: source: {{diffusion: {{path: ..., model: {}}}}}", names.front()));
}

}  // namespace ggufmill::diffusion
