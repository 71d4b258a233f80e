#pragma once
// Reuse of tensors from an earlier output instead of making them again.

#include <atomic>

#include "pipeline/core/error.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Changes the plan so that output `output`, and others that share its encodings, copy from the earlier output `reuse`
// those tensors that, according to its manifest, were made from unchanged inputs and options: expression, sources,
// type, importance, treatment of non-finite values, version. `reuse` is the path of the output's first file, in whose
// folder the manifest is, or that of the manifest. Reads no weights. Exit code 4 if the output does not exist, if
// there is no valid manifest, or if its files are not those it describes. Adds a warning if nothing can be reused.
Status reuse_earlier(Plan& plan, std::size_t output, const std::string& reuse);

// Reads the tensors that the plan takes from earlier outputs, on limits.threads threads: exit code 3 if one does not
// match the checksum in its manifest. Returns kInterrupted if `*stop` is set.
Status check_taken(const Plan& plan, const std::atomic<bool>* stop);

}  // namespace ggufmill
