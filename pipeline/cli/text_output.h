#pragma once
// Text files that the program writes beside its outputs.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"

namespace ggufmill {

// Whole or not at all. `path` must be none of `inputs`, and be new without `overwrite`.
Status write_text(const std::string& path, const std::string& text, const std::vector<SourceFile>& inputs,
                  bool overwrite);

// Takes a text piece by piece.
using PieceSink = std::function<void(std::string_view piece)>;
// The same for a text that is never whole in memory: `pieces` is called twice, first to learn how long it is, and gives
// the same each time.
Status write_pieces(const std::string& path, const std::function<void(const PieceSink&)>& pieces,
                    const std::vector<SourceFile>& inputs, bool overwrite);

// Whether that could be done now: to be told before a long run, not after it.
Status check_text(const std::string& path, const std::vector<SourceFile>& inputs, bool overwrite);

}  // namespace ggufmill
