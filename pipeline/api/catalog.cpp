#include "pipeline/api/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/api/registry.h"
#include "pipeline/config/job.h"
#include "pipeline/config/schema.h"
#include "pipeline/io/json_file.h"
#include "stages/gguf/file_name.h"
#include "stages/huggingface/map/added_maps.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/model_id.h"
#include "stages/quantize/exclusion.h"
#include "stages/quantize/objective.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

json::array texts(const auto& words) {
  json::array array;
  for (const auto& word : words) array.emplace_back(word);
  return array;
}

Result<json::array> recipes(const RecipeCatalog& catalog) {
  json::array list;
  for (const BuiltInRecipe& built_in : catalog.offered()) {
    BOOST_OUTCOME_TRY(const Recipe recipe, catalog.find(std::string(built_in.name)));
    list.push_back({{"name", recipe.name},
                    {"aliases", texts(recipe.aliases)},
                    {"file_type", recipe.file_type ? json::value(*recipe.file_type) : json::value()},
                    {"type", recipe.type ? json::value(recipe.type->name) : json::value()},
                    {"description", recipe.description}});
  }
  return list;
}

Result<json::array> objectives() {
  json::array list;
  for (const BuiltInObjective& built_in : built_in_objectives()) {
    BOOST_OUTCOME_TRY(const auto objective, find_objective(std::string(built_in.name), {}));
    list.push_back({{"name", objective.name}, {"formula", objective.formula}});
  }
  return list;
}

Result<json::array> exclusions() {
  json::array list;
  for (const BuiltInExclusion& built_in : built_in_exclusions()) {
    BOOST_OUTCOME_TRY(const auto exclusion, find_exclusion(std::string(built_in.name), {}, {}));
    json::array types;
    for (const TypeInfo* type : exclusion.types) types.emplace_back(type->name);
    list.push_back({{"name", exclusion.name}, {"types", std::move(types)}, {"modules", texts(exclusion.modules)}});
  }
  return list;
}

// Returns the name of an architecture, followed by its other names.
std::string names_of(const huggingface::Architecture& architecture) {
  std::string names = architecture.name;
  for (const huggingface::OtherName& other : architecture.other_names) names += ", " + other.name;
  return names;
}

Result<json::array> architectures(const std::vector<std::string>& maps) {
  BOOST_OUTCOME_TRY(const auto added, huggingface::AddedMaps::read(huggingface::map_places(maps)));
  std::vector<std::string> names;  // or paths
  for (const huggingface::AddedMaps::Map& each : added.maps()) names.push_back(each.path);
  for (const huggingface::BuiltInArchitecture& built_in : huggingface::built_in_architectures())
    if (!added.named(built_in.name)) names.emplace_back(built_in.name);
  json::array list;
  for (const std::string& name : names) {
    BOOST_OUTCOME_TRY(const auto architecture, huggingface::read_architecture(name, {}, added));
    json::array tokenizers;
    for (const auto& each : architecture.tokenizer.readers)
      tokenizers.emplace_back(tokenizer_reader_name(each.choice.reader));
    list.push_back({{"map", architecture.file},
                    {"architecture", names_of(architecture)},
                    {"description", architecture.description},
                    {"classes", texts(architecture.serves)},
                    {"tokenizers", std::move(tokenizers)},
                    {"partial", architecture.partial}});
  }
  return list;
}

void add_functions(const char* kind, const auto& functions, json::array& list) {
  for (const auto& each : functions)
    list.push_back(
        {{"name", each.name}, {"kind", kind}, {"least", each.least}, {"most", each.most}, {"description", each.doc}});
}

json::array functions() {
  json::array list;
  add_functions("value", huggingface::value_functions(), list);
  add_functions("operation", huggingface::tensor_operations(), list);
  add_functions("computed tensor", huggingface::tensor_functions(), list);
  return list;
}

// Returns the text of the built-in with that name. `kind` and `verb` are for the error message.
template <class BuiltIns>
Result<std::string> text_in(const BuiltIns& built_ins, const std::string& name, const char* kind) {
  for (const auto& built_in : built_ins)
    if (built_in.name == name) return std::string(built_in.text);
  return usage_error(fmt::format("'{}' is not one of the built-in {}", name, kind),
                     fmt::format("`ggufmill recipe {}` lists them", kind));
}

// Returns the text of the built-in with that name, which was found: if it is none of them, it is a file.
template <class BuiltIns>
Result<std::string> text_of_found(const BuiltIns& built_ins, const std::string& name, const std::string& found,
                                  const char* kind, const char* listed_by) {
  for (const auto& built_in : built_ins)
    if (built_in.name == found) return std::string(built_in.text);
  return usage_error(fmt::format("'{}' is a file, not a built-in {}", name, kind), listed_by);
}

}  // namespace

Result<json::array> describe_catalog(CatalogKind kind, const RecipeCatalog& catalog,
                                     const std::vector<std::string>& maps) {
  switch (kind) {
    case CatalogKind::kRecipes:
      return recipes(catalog);
    case CatalogKind::kObjectives:
      return objectives();
    case CatalogKind::kExclusions:
      return exclusions();
    case CatalogKind::kArchitectures:
      return architectures(maps);
    case CatalogKind::kFunctions:
      break;
  }
  return functions();
}

Result<std::string> catalog_text(CatalogKind kind, const std::string& name, const std::vector<std::string>& maps) {
  if (kind == CatalogKind::kRecipes) {
    if (const BuiltInRecipe* built_in = find_built_in_recipe(name)) return std::string(built_in->text);
    BOOST_OUTCOME_TRY(const Recipe recipe, RecipeCatalog().find(name));
    return text_of_found(built_in_recipes(), name, recipe.name, "recipe",
                         "`ggufmill recipe list` lists the built-in recipes");
  }
  if (kind == CatalogKind::kArchitectures) {
    BOOST_OUTCOME_TRY(const auto added, huggingface::AddedMaps::read(huggingface::map_places(maps)));
    if (const huggingface::AddedMaps::Map* const map = added.named(name))
      return read_text_file(map->path, huggingface::kMaxMapBytes);
    BOOST_OUTCOME_TRY(huggingface::read_architecture(name));
    return text_of_found(huggingface::built_in_architectures(), name, name, "map",
                         "`ggufmill architectures` lists the built-in maps");
  }
  if (kind == CatalogKind::kExclusions) return text_in(built_in_exclusions(), name, "exclusions");
  if (kind == CatalogKind::kObjectives) return text_in(built_in_objectives(), name, "objectives");
  return usage_error("functions have no text", "`ggufmill architectures --functions` lists them");
}

std::string conventional_name(const Model& model, std::string encoding) {
  const MetadataValue* type = model.metadata.find("general.file_type");
  if (const auto number = type ? as_unsigned(*type) : std::nullopt; encoding.empty() && number)
    for (const BuiltInRecipe& built_in : built_in_recipes())
      if (encoding.empty() && heading_of(built_in).file_type == *number) encoding = built_in.name;
  return gguf::file_name_of(model, huggingface::size_label(huggingface::count_weights(model.tensors)), encoding);
}

Result<std::string> schema_of(std::string_view kind) {
  if (kind == "pipeline") return json_schema(job_fields(make_registry()));
  if (kind == "recipe") return json_schema(recipe_fields());
  if (kind == "architecture") return json_schema(huggingface::architecture_fields());
  return usage_error(fmt::format("there is no schema '{}'", kind), "give pipeline, recipe, or architecture");
}

}  // namespace ggufmill
