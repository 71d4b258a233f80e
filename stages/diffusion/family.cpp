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
std::size_t largest_match(const std::vector<Names>& sets, const std::set<std::string, std::less<>>& tensors) {
  std::size_t largest = 0;
  for (const Names& set : sets)
    if (std::ranges::all_of(set, [&](const std::string& name) { return tensors.contains(name); }))
      largest = std::max(largest, set.size());
  return largest;
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

Result<Family> find_family(const std::set<std::string, std::less<>>& tensors) {
  std::optional<Family> best;
  std::size_t most = 0;
  bool is_diffusers = false;
  Names names;
  for (const BuiltInFamily& built_in : built_in_families()) {
    BOOST_OUTCOME_TRY(Family family, parse_family(built_in.text, std::string(built_in.name)));
    names.push_back(family.description);
    const std::size_t original = largest_match(family.found_by, tensors),
                      diffusers = largest_match(family.diffusers, tensors);
    if (std::max(original, diffusers) <= most) continue;
    most = std::max(original, diffusers);
    is_diffusers = diffusers > original;
    best = std::move(family);
  }
  if (!best)
    return input_error(
        {}, "its tensors are not those of a known diffusion model",
        fmt::format("known are {}; describe another one in a file, `model: ./mine.yaml`, or copy its tensors "
                    "as they are: `source: {{safetensors: {{path: ..., architecture: NAME}}}}`",
                    fmt::join(names, "; ")));
  if (is_diffusers)
    return input_error(
        {}, fmt::format("{} in the layout of Diffusers, which no program reads from a GGUF file", best->description),
        "convert the file in the model's original layout, usually a single file beside the folders");
  return std::move(*best);
}

}  // namespace ggufmill::diffusion
