#pragma once
// Text files that the program writes beside its outputs.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"

namespace ggufmill {

// Whole or not at all. `path` must be none of `inputs`, and be new without `overwrite`.
Status write_text(const std::string& path, const std::string& text, const std::vector<SourceFile>& inputs,
                  bool overwrite);

// Whether that could be done now: to be told before a long run, not after it.
Status check_text(const std::string& path, const std::vector<SourceFile>& inputs, bool overwrite);

}  // namespace ggufmill
