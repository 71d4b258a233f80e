#pragma once
// `ggufmill status` of a cluster job.

#include <string>

namespace ggufmill {

// Says how far the job in `folder` is, over and over with `watch`; returns the exit code.
int cluster_status(const std::string& folder, bool json, bool watch);

}  // namespace ggufmill
