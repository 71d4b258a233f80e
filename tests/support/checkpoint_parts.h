#pragma once
// A checkpoint with several parts: a text model, encoders of images, and a layer that predicts further tokens.

#include <boost/json/value.hpp>
#include <string>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

// Returns the spec of the checkpoint for make_checkpoint(): the text model of one case in ../shared/hf-more with the
// encoders of another. `specs` is the folder of the cases. Throws std::runtime_error.
boost::json::value spec_with_all_parts(const fs::path& specs);

// Creates the checkpoint in `parent` and returns its path; empty if the shared data is missing.
std::string checkpoint_with_all_parts(const fs::path& parent);

}  // namespace ggufmill
