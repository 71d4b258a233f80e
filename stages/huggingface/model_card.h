#pragma once
// The model card of a checkpoint: the YAML at the head of its README.md.

#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// What stands between the first line, "---", and the next "---", with the types that YAML 1.1 gives to plain scalars
// (`no` is false, 7 a number; dates stay text). Empty where there is no README.md, no such first line, or no map; the
// latter adds a warning. Errors are of code kBadInput and name the place. Reads no more than 2 MiB of the file.
Result<boost::json::object> read_model_card(const std::filesystem::path& folder, std::vector<std::string>& warnings);

}  // namespace ggufmill
