#pragma once
// Runs jobs in this process, checks the properties that their outputs must have, and finds smaller jobs that violate
// them too.

#include <map>
#include <string>
#include <vector>

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

// Compares the files of an output of two runs. Returns the first difference, with the tensor in which it is; empty if
// there is none. `folder` is for temporary files.
std::string difference(const Context& context, const RandomOutput& output, const Files& alone, const Files& together,
                       const std::string& folder);

// Compares the tensors of an output, whose files are in `folder`, with the bytes that they must have: those of the
// source, or if the type is another one those rows converted in memory. Returns the first difference; empty if there is
// none. `compared` is increased by the number of tensors.
std::string wrong_value(const Context& context, const RandomOutput& output, const Expected& expected,
                        const Files& files, const std::string& folder, std::size_t& compared);

struct JobCheck {
  std::string fault;                 // empty: none
  std::vector<std::string> refused;  // why outputs were omitted: the library refuses to make them alone
  std::size_t outputs = 0;           // that were compared
  std::size_t tensors = 0;           // whose values were compared
};

// Makes each output alone, then all of them together, with the settings of the job. Each must be the same both times,
// and tensors whose values no stage changes must have those of the source. `folder` is for temporary files, and
// contains the outputs in the folder `out`.
JobCheck check_job(const Context& context, const RandomJob& job, const std::string& folder);

// Returns the job without the outputs, stages and settings that it does not need for a fault.
RandomJob smaller_job(const Context& context, RandomJob job, const std::string& folder);

}  // namespace ggufmill::testing
