#pragma once
// Compares outputs with each other, and with the values of the source.

#include <string>

#include "tests/random/job_run.h"

namespace ggufmill::testing {

// Compares the files of an output of two runs. Returns the first difference, with the tensor in which it is; empty if
// there is none. `folder` is for temporary files.
std::string difference(const Context& context, const RandomOutput& output, const Files& alone, const Files& together,
                       const std::string& folder);

// Compares the tensors of an output, whose files are in `folder`, with the bytes that they must have: those of the
// source, or if the type is another one those rows converted in memory. Returns the first difference; empty if there is
// none. `compared` is increased by the number of tensors.
std::string wrong_value(const Context& context, const RandomOutput& output, const Expected& expected,
                        const Files& files, const std::string& folder, std::size_t& compared);

}  // namespace ggufmill::testing
