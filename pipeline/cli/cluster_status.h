#pragma once
// `ggufmill status` for a cluster job.

#include <string>

namespace ggufmill {

// Prints the status of the job in `folder`, repeatedly if `watch` is set; returns the exit code.
int cluster_status(const std::string& folder, bool json, bool watch);

}  // namespace ggufmill
