#pragma once
// `run --profile FILE`: where the time went.

#include "pipeline/cli/planning.h"
#include "pipeline/graph/profile.h"

namespace ggufmill {

// The trace as `path`, whole or not at all; unless quiet, the sums as a table on stderr.
Status tell_profile(const Profile& profile, const std::string& path, const Plan& plan, bool overwrite, bool quiet);

}  // namespace ggufmill
