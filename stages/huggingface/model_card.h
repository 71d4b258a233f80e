#pragma once
// The model card of a checkpoint: the YAML at the start of its README.md.

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::huggingface {

// Returns the YAML between the first line, "---", and the next "---". Plain scalars are typed according to YAML 1.1
// (`no` is false, 7 a number), but dates remain text. Returns an empty object if README.md is missing, does not begin
// with such a line, or does not contain a map; the last case adds a warning. Errors have the code kBadInput and name
// the place. Reads at most 2 MiB of the file.
Result<boost::json::object> read_model_card(const fs::path& folder, std::vector<std::string>& warnings);

}  // namespace ggufmill::huggingface
