#pragma once
// HTML pages about models, plans and curves.

#include <string>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/report/models_page.h"

namespace ggufmill {

// Returns the path of an output's first file, and how many more there are.
std::string title_of(const PlannedOutput& output);

// Return what a page shows of an output, and of a model that was read from `path`.
PicturedModel pictured(const PlannedOutput& output);
PicturedModel pictured(const std::string& path, const Model& model);

// Writes a page. `read`: the files that it was made from, which it must not replace. Fails with exit code 2 if the path
// is one of them, or exists and `overwrite` is false.
Status write_page(const Context& context, const std::string& path, const std::string& page,
                  std::vector<std::string> read, bool overwrite);

}  // namespace ggufmill
