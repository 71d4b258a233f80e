#pragma once
// Tensors that are taken from an earlier output instead of being made again.

#include <atomic>

#include "pipeline/core/error.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Changes the plan so that output `output`, and others that share its encodings, take from the earlier output `reuse`
// what its manifest says was made of the same: expression, sources, type, importance, treatment of what is not finite,
// version. `reuse`: the path of its first file, beside which its manifest is, or of the manifest. Reads no weights.
// Exit code 4 where there is no sound manifest, or its files are not those that it speaks of. Adds a warning where
// nothing can be taken.
Status reuse_earlier(Plan& plan, std::size_t output, const std::string& reuse);

// Reads what the plan takes from earlier outputs, on limits.threads threads: exit code 3 where it has not the checksum
// that the manifest said. With `stop` set: kInterrupted.
Status check_taken(const Plan& plan, const std::atomic<bool>* stop);

}  // namespace ggufmill
