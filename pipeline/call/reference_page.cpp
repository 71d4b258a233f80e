#include "pipeline/call/reference_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "pipeline/api/registry.h"
#include "pipeline/config/job.h"
#include "pipeline/config/reference.h"
#include "stages/arrays/arrays.h"
#include "stages/diffusion/family.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/quantize/exclusion.h"
#include "stages/quantize/objective.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

// Returns a field without its nested fields.
FieldSpec closed(FieldSpec field) {
  field.fields.clear();
  field.item.clear();
  for (FieldSpec& alternative : field.alternatives) alternative = closed(std::move(alternative));
  return field;
}

FieldSpec* field_named(FieldSpec& map, const std::string& name) {
  const auto found =
      std::find_if(map.fields.begin(), map.fields.end(), [&](const FieldSpec& field) { return field.name == name; });
  return found == map.fields.end() ? nullptr : &*found;
}

bool is_stage(const std::string& name) {
  const auto& stages = make_registry().stages;
  return std::any_of(stages.begin(), stages.end(), [&](const StageSpec& stage) { return stage.field.name == name; });
}

// Removes the nested fields of recipe rules: their conditions have a separate section.
void close_rules(FieldSpec& field) {
  for (const char* name : {"keep", "rules", "adjust", "models"})
    if (FieldSpec* rules = field_named(field, name)) *rules = closed(std::move(*rules));
  for (FieldSpec& alternative : field.alternatives) close_rules(alternative);
}

std::string section(const std::string& title, const std::string& text, const FieldSpec& fields) {
  return fmt::format("\n## {}\n{}\n\n{}", title, text, field_reference_markdown(fields));
}

std::string stage_section(const StageSpec& stage) {
  FieldSpec field = stage.field;
  close_rules(field);
  const char* places = stage.per_output ? "In `stages:`, for all outputs, or in an output." : "In `stages:`.";
  return section("Stage `" + field.name + "`", places, field);
}

// Returns a table of the values of `quantize.objective`.
std::string objectives_section() {
  std::string rows;
  for (const BuiltInObjective& built_in : built_in_objectives())
    if (const auto objective = find_objective(std::string(built_in.name), {}))
      rows +=
          fmt::format("\n| {} | {} | {} |", built_in.name, objective.value().formula, objective.value().description);
  return section("Objectives",
                 "Values of `quantize.objective`; `ggufmill recipe objectives NAME` prints one to copy and change.\n\n"
                 "| Built in | What is made small | What it is |\n|---|---|---|" +
                     rows,
                 objective_fields());
}

// Returns a table of the values of `quantize.exclude`.
std::string exclusions_section() {
  std::string rows;
  for (const BuiltInExclusion& built_in : built_in_exclusions())
    if (const auto exclusion = find_exclusion(std::string(built_in.name), {}, {})) {
      std::vector<std::string_view> types;
      for (const TypeInfo* type : exclusion.value().types) types.push_back(type->name);
      rows += fmt::format("\n| {} | {} | {} | {} |", built_in.name, fmt::join(types, ", "),
                          exclusion.value().description, exclusion.value().source);
    }
  return section("Exclusions",
                 "Values of `quantize.exclude`; `ggufmill recipe exclusions NAME` prints one to copy and change.\n\n"
                 "| Built in | Types | What they have in common | Where that is known from |\n|---|---|---|---|" +
                     rows,
                 exclusion_fields());
}

// Returns a table of the values of `model` in the source `diffusion`.
std::string families_section() {
  std::string rows;
  for (const diffusion::BuiltInFamily& built_in : diffusion::built_in_families())
    if (const auto family = diffusion::named_family(std::string(built_in.name), {}))
      rows += fmt::format("\n| {} | {} |", built_in.name, family.value().description);
  return section("Diffusion models",
                 "Values of `source.diffusion.model`, or a file with the keys below, as in configs/diffusion.\n\n"
                 "| Built in | Models |\n|---|---|" +
                     rows,
                 diffusion::family_fields());
}

}  // namespace

std::string pipeline_reference() {
  FieldSpec job = job_fields(make_registry());
  for (FieldSpec& field : field_named(job, "stages")->item.front().fields) field = closed(std::move(field));
  std::erase_if(field_named(job, "outputs")->item.front().fields,
                [](const FieldSpec& field) { return is_stage(field.name); });
  std::string page = fmt::format(
      "# Pipeline files\nPrinted by `ggufmill schema pipeline --reference`. `ggufmill --version --verbose` "
      "prints the version of llama.cpp that is meant here. Example: `{}`.\n\n{}",
      job.example, field_reference_markdown(job));
  for (const StageSpec& stage : make_registry().stages) page += stage_section(stage);
  page += objectives_section() + exclusions_section() + families_section();
  return page + section("Files of the source `arrays`", "Format of the files that `source: {arrays: FILE.yaml}` names.",
                        arrays_fields());
}

std::string recipe_reference() {
  FieldSpec recipe = recipe_fields(), rule = field_named(recipe, "rules")->item.front();
  recipe.name.clear();
  close_rules(recipe);
  return "# Recipes\nPrinted by `ggufmill schema recipe --reference`; `ggufmill recipe show Q4_K_M` prints an "
         "example.\n\n" +
         field_reference_markdown(recipe) +
         section("Rules of recipes",
                 "All conditions of a rule must be true. Entries of `keep` have no type; groups of `models` have only "
                 "conditions on the model.",
                 rule);
}

std::string architecture_reference() {
  FieldSpec map = huggingface::architecture_fields();
  map.name.clear();
  return "# Architecture maps\nPrinted by `ggufmill schema architecture --reference`; `ggufmill architectures show "
         "llama` prints an example, and `ggufmill architectures --functions` lists the functions for values and the "
         "operations on tensors.\n\n" +
         field_reference_markdown(map);
}

}  // namespace ggufmill
