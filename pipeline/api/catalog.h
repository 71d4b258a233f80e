#pragma once
// The files that are built in: recipes, objectives, exclusions, architecture maps; and what recipes do to a model.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {

// Kinds of built-in files; `functions` are those that architecture maps can call, which have no files.
enum class CatalogKind { kRecipes, kObjectives, kExclusions, kArchitectures, kFunctions };
inline constexpr std::string_view kCatalogNames[] = {"recipes", "objectives", "exclusions", "architectures",
                                                     "functions"};

// Returns the built-in files of a kind, of recipes those that `catalog` offers, and of architectures also the added
// maps in the folders and files `maps`, whose `map` is their path:
//   recipes        [{name, aliases, file_type (or null), type (or null), description}]
//   objectives     [{name, formula}]
//   exclusions     [{name, types, modules}]
//   architectures  [{map, architecture, description, classes, tokenizers, partial}]
//   functions      [{name, kind, least, most, description}]: of values, on tensors, and of computed tensors
Result<boost::json::array> describe_catalog(CatalogKind kind, const RecipeCatalog& catalog = RecipeCatalog(),
                                            const std::vector<std::string>& maps = {});

// Returns the text of a built-in file, or of an added map: a YAML file to copy and change. Recipes are also found by
// their aliases. Fails with exit code 2 if there is none with this name.
Result<std::string> catalog_text(CatalogKind kind, const std::string& name, const std::vector<std::string>& maps = {});

// Returns the file name for a model in GGUF's naming convention. An empty `encoding` stands for that of
// general.file_type.
std::string conventional_name(const Model& model, std::string encoding);

// Returns the JSON Schema of files of a kind: pipeline, recipe or architecture. Fails with exit code 2 for other kinds.
Result<std::string> schema_of(std::string_view kind);

}  // namespace ggufmill
