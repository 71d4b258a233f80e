#pragma once
// The pipeline file as a card shows it.

#include <string>
#include <string_view>

namespace ggufmill {

// Returns the text of a pipeline file without folders of this machine: absolute paths, those in a home folder (~), and
// those that leave the folder of the job (..) become their last component, also in comments. Other text, such as
// relative paths and addresses (hf://), remains as it is.
std::string without_folders(std::string_view job);

}  // namespace ggufmill
