#pragma once
// Runs a job in this process and returns the files that it writes.

#include <map>
#include <string>

#include "pipeline/api/context.h"
#include "tests/random/random_job.h"

namespace ggufmill::testing {

using Files = std::map<std::string, std::string>;  // contents by path, relative to a folder

// Runs a pipeline file whose outputs are in `folder`, which is removed first. Fails as the library does.
Result<Files> run_job(const Context& context, const std::string& text, const RunSettings& settings,
                      const std::string& folder);

// Writes files to `folder`, which is removed first.
void write_files(const Files& files, const std::string& folder);

// Returns the files of the output with this name (RandomOutput::name).
Files files_of(const Files& files, const std::string& output);

}  // namespace ggufmill::testing
